//go:build race

package supervise_test

const raceEnabled = true
