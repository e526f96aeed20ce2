// Package swov1 stands in for SolarWinds' client: the version that KEDA 2.18.3 is written for can no longer be had,
// and later ones do not fit. A trigger of type solarwinds gets an error; nothing else of KEDA is touched.
package swov1

import (
	"context"
	"errors"

	"github.com/solarwinds/swo-sdk-go/swov1/models/operations"
)

// Option sets nothing.
type Option struct{}

// Swo is the client.
type Swo struct{ Metrics Metrics }

// Metrics is its part that KEDA asks.
type Metrics struct{}

// New makes a client.
func New(...Option) *Swo { return &Swo{} }

// WithSecurity sets nothing.
func WithSecurity(string) Option { return Option{} }

// WithServerURL sets nothing.
func WithServerURL(string) Option { return Option{} }

// ListMetricMeasurements always fails.
func (Metrics) ListMetricMeasurements(
	context.Context, operations.ListMetricMeasurementsRequest,
) (*operations.ListMetricMeasurementsResponse, error) {
	return nil, errors.New("this build of KEDA has no client for SolarWinds")
}
