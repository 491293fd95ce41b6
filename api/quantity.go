package api

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Size is an amount of bytes: a whole JSON number, or text with a unit (B, KiB, MiB, GiB, TiB; k, m, g, t as Docker
// knows them, powers of 1024).
type Size int64

// Int is a whole number; fractions and exponents are refused.
type Int int64

// CPUs is a number of cores in thousandths: JSON 1.5 or "1.5" is 1500.
type CPUs int64

// Duration is a span: text such as "90s", "5m", "1h30m", or a whole number of seconds.
type Duration time.Duration

var sizeUnits = []struct {
	suffix string
	factor int64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30}, {"tb", 1 << 40},
	{"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"t", 1 << 40}, {"b", 1}, {"", 1},
}

// ParseSize reads a size. Negative, fractional and overflowing values are refused; 0 is parsed, and refused where
// the value is used.
func ParseSize(s string) (Size, error) {
	low := strings.ToLower(strings.TrimSpace(s))
	for _, u := range sizeUnits {
		num, ok := strings.CutSuffix(low, u.suffix)
		if !ok || num == "" || !allDigits(num) {
			continue
		}
		n, err := strconv.ParseInt(num, 10, 64)
		if err != nil || n > math.MaxInt64/u.factor {
			return 0, fmt.Errorf("%.40q is more than any size can be", s)
		}
		return Size(n * u.factor), nil
	}
	return 0, fmt.Errorf("%.40q is not a size; write a whole number and a unit, such as 512MiB or 2g", s)
}

func allDigits(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}

// ParseCPUs reads a number of cores with at most three decimals.
func ParseCPUs(s string) (CPUs, error) {
	whole, frac, _ := strings.Cut(s, ".")
	if !allDigits(whole) || (frac != "" && !allDigits(frac)) || len(frac) > 3 || len(whole) > 6 || strings.HasSuffix(s, ".") {
		return 0, fmt.Errorf("%.40q is not a number of cores; write 2 or 0.5 (three decimals at most)", s)
	}
	n, err := strconv.ParseInt(whole+(frac + "000")[:3], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a number of cores", s)
	}
	return CPUs(n), nil
}

// ParseDuration reads a span; a bare whole number is seconds. Negative spans are refused.
func ParseDuration(s string) (Duration, error) {
	if allDigits(s) {
		s += "s"
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%.40q is not a span of time; write 90s, 5m or 1h30m", s)
	}
	return Duration(d), nil
}

// text returns a JSON string's content or a JSON number's literal.
func text(b []byte) (string, error) {
	if len(b) > 0 && b[0] == '"' {
		var s string
		err := json.Unmarshal(b, &s)
		return s, err
	}
	return string(b), nil
}

// UnmarshalJSON takes a whole number or text.
func (v *Size) UnmarshalJSON(b []byte) error { return parseInto(v, b, ParseSize) }

// UnmarshalJSON takes a number or text.
func (v *CPUs) UnmarshalJSON(b []byte) error { return parseInto(v, b, ParseCPUs) }

// UnmarshalJSON takes a whole number of seconds or text.
func (v *Duration) UnmarshalJSON(b []byte) error { return parseInto(v, b, ParseDuration) }

// UnmarshalJSON takes a whole number only.
func (v *Int) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return fmt.Errorf("%.40s is not a whole number that fits 64 bits", b)
	}
	*v = Int(n)
	return nil
}

func parseInto[T any](dst *T, b []byte, parse func(string) (T, error)) error {
	s, err := text(b)
	if err != nil {
		return err
	}
	v, err := parse(s)
	if err == nil {
		*dst = v
	}
	return err
}

// UnmarshalText serves TOML.
func (v *Size) UnmarshalText(b []byte) error { return textInto(v, b, ParseSize) }

// UnmarshalText serves TOML.
func (v *CPUs) UnmarshalText(b []byte) error { return textInto(v, b, ParseCPUs) }

// UnmarshalText serves TOML.
func (v *Duration) UnmarshalText(b []byte) error { return textInto(v, b, ParseDuration) }

func textInto[T any](dst *T, b []byte, parse func(string) (T, error)) error {
	v, err := parse(string(b))
	if err == nil {
		*dst = v
	}
	return err
}

// MarshalJSON writes cores as a number, 1.5.
func (v CPUs) MarshalJSON() ([]byte, error) { return []byte(v.String()), nil }

// MarshalJSON writes text, "1m30s".
func (v Duration) MarshalJSON() ([]byte, error) { return json.Marshal(v.String()) }

func (v CPUs) String() string {
	return strconv.FormatFloat(float64(v)/1000, 'f', -1, 64)
}

func (v Duration) String() string { return time.Duration(v).String() }

// String writes the largest unit that divides the size.
func (v Size) String() string {
	for _, u := range []struct {
		name   string
		factor int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if int64(v) >= u.factor && int64(v)%u.factor == 0 {
			return strconv.FormatInt(int64(v)/u.factor, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(v), 10) + "B"
}
