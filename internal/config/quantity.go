package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The quantities of a config file are written as in requests: "512MiB", "0.5", "90s". They are parsed here again, for
// this room may not know the wire. A TOML number serves as well: bytes, cores, seconds.

// maxSize is more than any host has; it keeps sums of sizes within 64 bits.
const maxSize = 1 << 50

type size int64

var sizeUnits = []struct {
	suffix string
	factor int64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30}, {"tb", 1 << 40},
	{"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"t", 1 << 40}, {"b", 1}, {"", 1},
}

func (v *size) UnmarshalText(b []byte) error {
	s := strings.ToLower(strings.TrimSpace(string(b)))
	for _, u := range sizeUnits {
		num, ok := strings.CutSuffix(s, u.suffix)
		if !ok || !digits(num) {
			continue
		}
		n, err := strconv.ParseInt(num, 10, 64)
		if err != nil || n > maxSize/u.factor {
			return fmt.Errorf("%.40q is more than any size may be (1024TiB)", b)
		}
		*v = size(n * u.factor)
		return nil
	}
	return fmt.Errorf("%.40q is not a size; write a whole number and a unit, such as \"512MiB\"", b)
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

type cores int64 // thousandths

// UnmarshalText reads decimal digits alone: in floating point 1.001 × 1000 is not 1001.
func (v *cores) UnmarshalText(b []byte) error {
	whole, frac, point := strings.Cut(string(b), ".")
	frac = strings.TrimRight(frac, "0") // the TOML decoder writes the number 0.5 as 0.500000
	if !digits(whole) || len(whole) > 6 || point && strings.HasSuffix(string(b), ".") || frac != "" && !digits(frac) || len(frac) > 3 {
		return fmt.Errorf("%.40q is not a number of cores; write 2 or 0.5 (three decimals at most)", b)
	}
	n, err := strconv.ParseInt(whole+(frac + "000")[:3], 10, 64)
	if err != nil {
		return fmt.Errorf("%.40q is not a number of cores", b)
	}
	*v = cores(n)
	return nil
}

type span int64 // nanoseconds

func (v *span) UnmarshalText(b []byte) error {
	s := string(b)
	if digits(s) {
		s += "s"
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return fmt.Errorf("%.40q is not a span of time; write \"90s\", \"5m\" or \"1h30m\"", b)
	}
	*v = span(d)
	return nil
}
