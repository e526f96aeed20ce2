// Package operations has the questions and answers of SolarWinds' client that KEDA uses.
package operations

import (
	"time"

	"github.com/solarwinds/swo-sdk-go/swov1/models/components"
)

// ListMetricMeasurementsRequest is a question.
type ListMetricMeasurementsRequest struct {
	Name        string
	Filter      *string
	AggregateBy *components.MetricsAggregationMethods
	StartTime   *time.Time
	EndTime     *time.Time
	SeriesType  components.MetricsMetricSeriesType
}

// ListMetricMeasurementsResponse is an answer.
type ListMetricMeasurementsResponse struct{ Object *Measured }

// Measured is an answer's content.
type Measured struct{ Groupings []Grouping }

// Grouping is a series.
type Grouping struct{ Measurements []Measurement }

// Measurement is a value.
type Measurement struct{ Value float64 }
