package server

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"reflect"
	"strconv"
	"strings"

	"sandboxd/internal/job"
)

// Bounds on what a body may make the decoder build, far above any sound request; the exact ones are admission's.
const (
	maxItems = 512 << 10 // list items in a body: 1 MiB of argv holds no more
	maxKeys  = 1024      // keys of one object
)

// shape walks syntactically valid JSON beside the Go type it is meant for. It goes no deeper than the type does, so
// nesting in the body cannot make it recurse.
type shape struct {
	b     []byte
	i     int
	path  []step
	items int
}

// step is one part of a path: the key of an object, or the index of a list.
type step struct {
	key    string
	index  int
	isItem bool
}

func checkShape(body []byte, out any) error {
	s := &shape{b: body}
	return s.value(reflect.TypeOf(out).Elem())
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func (s *shape) value(t reflect.Type) error {
	s.space()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s.b[s.i] == 'n' {
		return s.fail("null is not a value here; leave the field out")
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return s.quantity(t)
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return s.object(t)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return s.base64(t)
		}
		return s.list(t)
	case reflect.String:
		_, err := s.text(t)
		return err
	case reflect.Bool:
		return s.boolean(t)
	case reflect.Int, reflect.Int64:
		return s.integer(t)
	}
	return s.fail("has no JSON form the daemon reads")
}

func (s *shape) object(t reflect.Type) error {
	if s.b[s.i] != '{' {
		return s.mismatch(t)
	}
	seen := make(map[string]bool)
	for s.i++; ; {
		switch s.space(); s.b[s.i] {
		case '}':
			s.i++
			return nil
		case ',':
			s.i++
			continue
		}
		raw, err := s.text(t)
		if err != nil {
			return err
		}
		key := unquote(raw)
		s.path = append(s.path, step{key: key})
		if seen[key] {
			return s.fail("given twice")
		}
		if seen[key] = true; len(seen) > maxKeys {
			return s.fail("one entry of more than %d", maxKeys)
		}
		field, err := s.field(t, key)
		if err != nil {
			return err
		}
		s.space()
		s.i++ // the colon
		if err := s.value(field); err != nil {
			return err
		}
		s.path = s.path[:len(s.path)-1]
	}
}

// field is the type of the value under a key.
func (s *shape) field(t reflect.Type, key string) (reflect.Type, error) {
	if t.Kind() == reflect.Map {
		return t.Elem(), nil
	}
	var names []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == key && name != "" && name != "-" {
			return f.Type, nil
		}
		names = append(names, name)
	}
	if near := nearest(key, names); near != "" {
		return nil, s.fail("unknown field; did you mean %s?", near)
	}
	return nil, s.fail("unknown field")
}

func (s *shape) list(t reflect.Type) error {
	if s.b[s.i] != '[' {
		return s.mismatch(t)
	}
	s.i++
	for n := 0; ; {
		switch s.space(); s.b[s.i] {
		case ']':
			s.i++
			return nil
		case ',':
			s.i++
			continue
		}
		if s.items++; s.items > maxItems {
			return s.fail("the body has more than %d list items", maxItems)
		}
		s.path = append(s.path, step{index: n, isItem: true})
		if err := s.value(t.Elem()); err != nil {
			return err
		}
		s.path = s.path[:len(s.path)-1]
		n++
	}
}

// text returns a string as it stands, quotes included.
func (s *shape) text(t reflect.Type) ([]byte, error) {
	if s.b[s.i] != '"' {
		return nil, s.mismatch(t)
	}
	start := s.i
	for s.i++; s.b[s.i] != '"'; s.i++ {
		if s.b[s.i] != '\\' {
			continue
		}
		if s.i++; s.b[s.i] != 'u' {
			continue
		}
		unit := s.hex(s.i + 1)
		s.i += 4
		switch {
		case unit >= 0xdc00 && unit < 0xe000:
			return nil, s.fail("has half of a surrogate pair")
		case unit >= 0xd800 && unit < 0xdc00:
			if s.b[s.i+1] != '\\' || s.b[s.i+2] != 'u' || s.hex(s.i+3)>>10 != 0xdc00>>10 {
				return nil, s.fail("has half of a surrogate pair")
			}
			s.i += 6
		}
	}
	s.i++
	return s.b[start:s.i], nil
}

// hex reads the four digits of a \u escape.
func (s *shape) hex(at int) uint64 {
	n, _ := strconv.ParseUint(string(s.b[at:at+4]), 16, 16) // the syntax is known to be sound
	return n
}

func (s *shape) base64(t reflect.Type) error {
	raw, err := s.text(t)
	if err != nil {
		return err
	}
	text := unquote(raw)
	if strings.ContainsAny(text, "\r\n") { // Go's decoder skips them, others do not
		return s.fail("is base64 with line breaks; send it as one line")
	}
	r := base64.NewDecoder(base64.StdEncoding.Strict(), strings.NewReader(text))
	if _, err := io.Copy(io.Discard, r); err != nil {
		return s.fail("is not standard base64 with padding")
	}
	return nil
}

func (s *shape) boolean(t reflect.Type) error {
	switch s.b[s.i] {
	case 't':
		s.i += len("true")
	case 'f':
		s.i += len("false")
	default:
		return s.mismatch(t)
	}
	return nil
}

func (s *shape) integer(t reflect.Type) error {
	if kindOf(s.b[s.i]) != "a number" {
		return s.mismatch(t)
	}
	raw := s.number()
	n, err := strconv.ParseInt(raw, 10, 64)
	if err != nil || reflect.Zero(t).OverflowInt(n) {
		return s.fail("%.40s is not a whole number that fits", raw)
	}
	return nil
}

// quantity is a number or text with a reader of its own.
func (s *shape) quantity(t reflect.Type) error {
	var raw []byte
	switch kindOf(s.b[s.i]) {
	case "text":
		var err error
		if raw, err = s.text(t); err != nil {
			return err
		}
	case "a number":
		raw = []byte(s.number())
	default:
		return s.mismatch(t)
	}
	if err := reflect.New(t).Interface().(json.Unmarshaler).UnmarshalJSON(raw); err != nil {
		return s.fail("%s", err)
	}
	return nil
}

func (s *shape) number() string {
	start := s.i
	for s.i < len(s.b) && strings.IndexByte("+-.0123456789eE", s.b[s.i]) >= 0 {
		s.i++
	}
	return string(s.b[start:s.i])
}

func (s *shape) space() {
	for strings.IndexByte(" \t\r\n", s.b[s.i]) >= 0 {
		s.i++
	}
}

func (s *shape) mismatch(want reflect.Type) error {
	return s.fail("is %s; want %s", kindOf(s.b[s.i]), wanted(want))
}

func (s *shape) fail(format string, args ...any) error {
	return job.Errorf(job.CodeInvalid, s.where(), format, args...)
}

func (s *shape) where() string {
	var out strings.Builder
	for _, p := range s.path {
		switch {
		case p.isItem:
			out.WriteString("[" + strconv.Itoa(p.index) + "]")
			continue
		case out.Len() > 0:
			out.WriteByte('.')
		}
		out.WriteString(showKey(p.key))
	}
	return out.String()
}
