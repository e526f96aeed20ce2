// Package components has the names of SolarWinds' client that KEDA uses.
package components

// MetricsAggregationMethods says how measurements are put together.
type MetricsAggregationMethods string

// The methods that a trigger may name.
const (
	MetricsAggregationMethodsCount MetricsAggregationMethods = "COUNT"
	MetricsAggregationMethodsMin   MetricsAggregationMethods = "MIN"
	MetricsAggregationMethodsMax   MetricsAggregationMethods = "MAX"
	MetricsAggregationMethodsAvg   MetricsAggregationMethods = "AVG"
	MetricsAggregationMethodsSum   MetricsAggregationMethods = "SUM"
	MetricsAggregationMethodsLast  MetricsAggregationMethods = "LAST"
)

// ToPointer returns a pointer to a copy.
func (method MetricsAggregationMethods) ToPointer() *MetricsAggregationMethods { return &method }

// MetricsMetricSeriesType says how measurements are grouped.
type MetricsMetricSeriesType string

// MetricsMetricSeriesTypeScalar asks for one measurement.
const MetricsMetricSeriesTypeScalar MetricsMetricSeriesType = "SCALAR"
