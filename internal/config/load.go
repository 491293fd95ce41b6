package config

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// maxFile bounds a config file in bytes.
const maxFile = 1 << 20

// Load reads the file at path over the defaults of the host. An empty path is the defaults alone.
func Load(path string, h Host) (Config, error) {
	c := Default(h)
	if path == "" {
		return c, Parse("", &c)
	}
	text, err := read(path)
	if err != nil {
		return c, fmt.Errorf("config: %w; name an existing file with --config, or none for the defaults", err)
	}
	if err := Parse(text, &c); err != nil {
		return c, fmt.Errorf("config %s: %w", path, err)
	}
	return c, nil
}

// read returns a file's text. The bound holds for what has no size, too: a device, a pipe.
func read(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s has more bytes than a config may have (%d)", path, maxFile)
	}
	return string(text), err
}

// Parse reads TOML text over c. Every fault is reported, each naming its key. After an error c is of no use.
func Parse(text string, c *Config) error {
	var f file
	if err := decode(text, &f); err != nil {
		return err
	}
	if err := f.Slots.check(); err != nil {
		return err
	}
	bad := f.applyTo(c)
	return errors.Join(append(bad, c.check())...)
}

// decode reads TOML text into a pointer to a shape, to the letter.
func decode(text string, shape any) error {
	md, err := toml.Decode(text, shape)
	var pe toml.ParseError
	switch {
	case errors.As(err, &pe) && pe.LastKey != "":
		err = fmt.Errorf("line %d: %s: %s", pe.Position.Line, pe.LastKey, pe.Message)
	case errors.As(err, &pe):
		err = fmt.Errorf("line %d: %s", pe.Position.Line, pe.Message)
	}
	// A key that nobody knows explains more than what came of reading on without it.
	return errors.Join(checkKeys(md, reflect.TypeOf(shape).Elem()), err)
}

// maxUnknown is how many unknown keys are told one by one.
const maxUnknown = 32

// anyName stands for the name of a profile among the keys. It is none itself.
const anyName = "NAME"

// checkKeys holds a file to the exact names of its shape: TOML's decoder matches names without regard to case and
// passes over those it does not know.
func checkKeys(md toml.MetaData, shape reflect.Type) error {
	known := map[string]bool{}
	collectKeys(shape, nil, known)
	var bad []error
	unknown := 0
	for _, k := range md.Keys() {
		name, plain := k.String(), slices.Clone(k)
		if len(k) > 1 && k[0] == "profiles" && known["profiles"] {
			plain[1] = anyName
		}
		// In this form a quoted name with a dot in it is not taken for two names.
		if known[plain.String()] {
			continue
		}
		if unknown++; unknown <= maxUnknown {
			guess := didYouMean(plain.String(), known)
			if len(k) > 1 {
				guess = strings.ReplaceAll(guess, "profiles."+anyName, "profiles."+toml.Key{k[1]}.String())
			}
			bad = append(bad, fmt.Errorf("%.128s: unknown key%s", name, guess))
		}
	}
	if unknown > maxUnknown {
		bad = append(bad, fmt.Errorf("… and %d more unknown keys", unknown-maxUnknown))
	}
	return errors.Join(bad...)
}

func collectKeys(t reflect.Type, prefix toml.Key, into map[string]bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			collectKeys(f.Type, prefix, into)
			continue
		}
		key := append(slices.Clone(prefix), f.Tag.Get("toml"))
		into[key.String()] = true
		inner := f.Type
		if inner.Kind() == reflect.Map {
			key, inner = append(key, anyName), inner.Elem()
			into[key.String()] = true
		}
		if inner.Kind() == reflect.Struct {
			collectKeys(inner, key, into)
		}
	}
}

const (
	farthest = 3   // how many letters may be wrong in a name that is still guessed
	maxGuess = 100 // letters; what is longer than any key is not compared with them
)

// didYouMean guesses the key that was meant: one that is spelt alike, or one of that name in another section.
func didYouMean(name string, known map[string]bool) string {
	name = strings.ToLower(name)
	last := name[strings.LastIndexByte(name, '.')+1:]
	best, least := "", farthest+1
	if len(name) > maxGuess {
		known = nil
	}
	for _, k := range slices.Sorted(maps.Keys(known)) {
		d := distance(name, strings.ToLower(k))
		if strings.HasSuffix(k, "."+last) {
			d = min(d, farthest)
		}
		if d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return "; see config.toml.example for all keys"
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// distance is the Levenshtein distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		prev := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			prev, row[j] = row[j], min(row[j]+1, row[j-1]+1, prev+cost)
		}
	}
	return row[len(b)]
}
