package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"sandboxd/internal/job"
)

// Decode fills out, a pointer to a struct, from one JSON object, and refuses with code invalid everything that two
// readers of JSON could understand differently or that would be dropped silently: unknown fields, keys of another
// case, a key twice, null, wrong types, lone surrogates, loose base64, invalid UTF-8, a byte order mark, data after
// the object. The error's Field is the path of what is at fault, such as limits.memory or command[3].
func Decode(body []byte, out any) error {
	if err := checkSyntax(body); err != nil {
		return err
	}
	if err := checkShape(body, out); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(out); err != nil {
		return job.Wrap(job.CodeInvalid, err, "the body cannot be read as the object this route takes")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return job.Errorf(job.CodeInvalid, "", "data after the JSON object")
	}
	return nil
}

// noValue takes any JSON and keeps nothing, so that only the syntax is checked.
type noValue struct{}

func (*noValue) UnmarshalJSON([]byte) error { return nil }

func checkSyntax(body []byte) error {
	if bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		return job.Errorf(job.CodeInvalid, "", "the body begins with a byte order mark; send plain UTF-8")
	}
	if at := invalidUTF8(body); at >= 0 {
		return job.Errorf(job.CodeInvalid, "", "the body is not UTF-8 at byte %d", at)
	}
	err := json.Unmarshal(body, &noValue{})
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return job.Errorf(job.CodeInvalid, "", "the body is not JSON at byte %d: %s", syntax.Offset, syntax.Error())
	case err != nil:
		return job.Wrap(job.CodeInvalid, err, "the body is not JSON")
	}
	return nil
}

func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}
