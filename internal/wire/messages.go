package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Message is a control message: a struct that travels as strict JSON. Validate gives its bounds; both sides call it,
// the sender before it encodes and the receiver after it decoded.
type Message interface {
	Type() Type
	Validate() error
}

// Encode validates m and returns its payload.
func Encode(m Message) ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(m); err != nil {
		return nil, refuse(ErrPayload, m.Type(), "does not encode")
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// Decode reads a frame as the message M: wire.Decode[wire.Ready](frame).
func Decode[M Message](f Frame) (M, error) {
	var m, zero M
	if f.Type != m.Type() {
		return zero, refuse(ErrOrder, f.Type, "want %s", m.Type())
	}
	if err := decodeStrict(f.Payload, &m); err != nil {
		return zero, refuse(ErrPayload, f.Type, "%v", err)
	}
	if err := m.Validate(); err != nil {
		return zero, err
	}
	return m, nil
}

// bounds collects the first field of a message that is out of bounds.
type bounds struct {
	of  Type
	err error
}

func (b *bounds) require(ok bool, field, want string) {
	if !ok && b.err == nil {
		b.err = refuse(ErrValue, b.of, "%s: want %s", field, want)
	}
}

func (b *bounds) text(s, field string, most int) {
	b.require(len(s) <= most && utf8.ValidString(s), field, "less and valid text")
}

func (b *bounds) name(s, field string, mayBeEmpty bool) {
	b.require(mayBeEmpty || s != "", field, "a name")
	b.require(len(s) <= 128 && printable(s), field, "at most 128 printable characters")
}

func (b *bounds) within(v, least, most int64, field string) {
	b.require(v >= least && v <= most, field, "a number in its range")
}

func printable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) < 0
}
