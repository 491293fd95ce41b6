// Package posture attacks real job containers of a real daemon. rows in table_test.go lists the attacks by their number
// in the design's list of probes, with the outcome that is safe; probe/ is the program that makes them from inside.
// Rows marked as not run could not be tried on this machine, and say why.
package posture
