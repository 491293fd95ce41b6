package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// maxDepth of nested objects and arrays; no message of ours needs more than three.
const maxDepth = 6

var (
	errUTF8    = errors.New("not UTF-8")
	errJSON    = errors.New("not JSON")
	errObject  = errors.New("not one object")
	errDepth   = errors.New("nested too deep")
	errKey     = errors.New("a key of other than a-z, 0-9 and _")
	errTwice   = errors.New("a key twice")
	errNull    = errors.New("null")
	errUnknown = errors.New("an unknown field or a wrong type")
)

// decodeStrict fills out from one JSON object and refuses all that two parsers could read differently: unknown fields,
// a key twice, keys of another case, null, invalid UTF-8, trailing data. Errors carry no bytes of the input.
func decodeStrict(payload []byte, out any) error {
	if !utf8.Valid(payload) {
		return errUTF8
	}
	if !json.Valid(payload) { // iterative, and bounded by its own depth limit
		return errJSON
	}
	if err := scanKeys(payload); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	if err := d.Decode(out); err != nil {
		return errUnknown
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errObject
	}
	return nil
}

// scanKeys walks valid JSON without building anything of it but the set of keys of the open objects.
func scanKeys(p []byte) error {
	if p = bytes.TrimLeft(p, " \t\r\n"); len(p) == 0 || p[0] != '{' {
		return errObject
	}
	var open []map[string]bool // nil for an array
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '{', '[':
			if len(open) == maxDepth {
				return errDepth
			}
			var keys map[string]bool
			if p[i] == '{' {
				keys = make(map[string]bool)
			}
			open = append(open, keys)
		case '}', ']':
			open = open[:len(open)-1]
		case 'n':
			return errNull
		case '"':
			end := stringEnd(p, i)
			if isKey(p, end) {
				if err := takeKey(open[len(open)-1], p[i+1:end]); err != nil {
					return err
				}
			}
			i = end
		}
	}
	return nil
}

func stringEnd(p []byte, i int) int {
	for i++; p[i] != '"'; i++ {
		if p[i] == '\\' {
			i++
		}
	}
	return i
}

func isKey(p []byte, end int) bool {
	rest := bytes.TrimLeft(p[end+1:], " \t\r\n")
	return len(rest) > 0 && rest[0] == ':'
}

func takeKey(keys map[string]bool, key []byte) error {
	if len(key) == 0 || len(key) > 64 || strings.Trim(string(key), "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return errKey
	}
	if keys[string(key)] {
		return errTwice
	}
	keys[string(key)] = true
	return nil
}

// ByteStrings are strings of any bytes but NUL, as argv and the environment have them. In JSON they are one base64
// string of NUL-terminated items: exact for what is not UTF-8, and never more than 4/3 of its size.
type ByteStrings []string

// MarshalJSON writes the base64 form.
func (s ByteStrings) MarshalJSON() ([]byte, error) {
	n := 0
	for _, item := range s {
		n += len(item) + 1
	}
	flat := make([]byte, 0, n)
	for _, item := range s {
		if strings.IndexByte(item, 0) >= 0 {
			return nil, ErrValue
		}
		flat = append(append(flat, item...), 0)
	}
	out := make([]byte, base64.StdEncoding.EncodedLen(len(flat))+2)
	out[0], out[len(out)-1] = '"', '"'
	base64.StdEncoding.Encode(out[1:], flat)
	return out, nil
}

// UnmarshalJSON reads the base64 form.
func (s *ByteStrings) UnmarshalJSON(b []byte) error {
	*s = nil
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return ErrPayload
	}
	flat := make([]byte, base64.StdEncoding.DecodedLen(len(b)-2))
	n, err := base64.StdEncoding.Strict().Decode(flat, b[1:len(b)-1])
	if err != nil || n > 0 && flat[n-1] != 0 {
		return ErrPayload
	}
	if n == 0 {
		return nil
	}
	*s = strings.Split(string(flat[:n-1]), "\x00")
	return nil
}
