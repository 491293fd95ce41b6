package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The quantities of a config file are written as in requests: "512MiB", "0.5", "90s". They are parsed here again, for
// this room may not know the wire.

type size int64

func (v *size) UnmarshalText(b []byte) error {
	s := strings.ToLower(strings.TrimSpace(string(b)))
	for _, u := range []struct {
		suffix string
		factor int64
	}{{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40}, {"b", 1}, {"", 1}} {
		num, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(num, 10, 64)
		if err != nil || n > math.MaxInt64/u.factor {
			break
		}
		*v = size(n * u.factor)
		return nil
	}
	return fmt.Errorf("%.40q is not a size; write a whole number and a unit, such as \"512MiB\"", b)
}

type cores int64

func (v *cores) UnmarshalText(b []byte) error {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > 1e6 || f*1000 != math.Trunc(f*1000) {
		return fmt.Errorf("%.40q is not a number of cores; write 2 or 0.5 (three decimals at most)", b)
	}
	*v = cores(math.Round(f * 1000))
	return nil
}

type span int64 // nanoseconds

func (v *span) UnmarshalText(b []byte) error {
	d, err := time.ParseDuration(string(b))
	if err != nil || d < 0 {
		return fmt.Errorf("%.40q is not a span of time; write \"90s\", \"5m\" or \"1h30m\"", b)
	}
	*v = span(d)
	return nil
}
