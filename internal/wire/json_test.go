package wire_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sandboxd/internal/wire"
)

func TestDecodeRefusesWhatTwoParsersCouldReadDifferently(t *testing.T) {
	tests := map[string]string{
		"unknown field":    `{"seq":1,"sequence":2}`,
		"key twice":        `{"seq":1,"seq":2}`,
		"case twin":        `{"seq":1,"Seq":2}`,
		"other case":       `{"SEQ":1}`,
		"escaped key":      `{"s\u0065q":1}`,
		"trailing data":    `{"seq":1}{"seq":2}`,
		"trailing word":    `{"seq":1} x`,
		"no object":        `[1]`,
		"a number":         `1`,
		"null":             `null`,
		"null field":       `{"seq":null}`,
		"text for number":  `{"seq":"1"}`,
		"fraction":         `{"seq":1.5}`,
		"negative":         `{"seq":-1}`,
		"1e999":            `{"seq":1e999}`,
		"NaN":              `{"seq":NaN}`,
		"2^64":             `{"seq":18446744073709551616}`,
		"invalid UTF-8":    "{\"seq\":1,\"\xff\":2}",
		"byte order mark":  "\ufeff{\"seq\":1}",
		"deep":             strings.Repeat(`{"seq":`, 5000) + "1" + strings.Repeat("}", 5000),
		"deep arrays":      `{"seq":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
		"long key":         `{"` + strings.Repeat("a", 100) + `":1}`,
		"unclosed":         `{"seq":1`,
		"empty key":        `{"":1}`,
		"key twice inside": `{"seq":{"a":1,"a":2}}`,
	}
	for name, payload := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := wire.Decode[wire.Ack](wire.Frame{Header: wire.Header{Type: wire.TypeAck}, Payload: []byte(payload)})
			if !errors.Is(err, wire.ErrPayload) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestDecodeWantsTheRightType(t *testing.T) {
	_, err := wire.Decode[wire.Ack](wire.Frame{Header: wire.Header{Type: wire.TypeEnd}, Payload: []byte(`{"seq":1}`)})
	if !errors.Is(err, wire.ErrOrder) {
		t.Error(err)
	}
}

func TestStartKeepsAnyBytesOfArgvAndEnvironment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		item := rapid.Map(rapid.SliceOfN(rapid.ByteRange(1, 255), 0, 64), func(b []byte) string { return string(b) })
		m := wire.Start{
			Argv: append([]string{"x"}, rapid.SliceOfN(item, 0, 8).Draw(t, "argv")...),
			Dir:  "/", TimeoutMS: 1,
		}
		for _, v := range rapid.SliceOfN(item, 0, 8).Draw(t, "env") {
			m.Env = append(m.Env, "K="+v)
		}
		payload, err := wire.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.Decode[wire.Start](wire.Frame{Header: wire.Header{Type: wire.TypeStart}, Payload: payload})
		if err != nil || !cmp.Equal(got, m) {
			t.Fatalf("%v\n%s", err, cmp.Diff(m, got))
		}
	})
}

func TestTheLargestStartFits(t *testing.T) {
	m := wire.Start{Argv: []string{"x"}, Dir: "/", TimeoutMS: 1}
	for range 7 {
		m.Argv = append(m.Argv, strings.Repeat("\x01", 128<<10-1))
	}
	for range 100 {
		m.Env = append(m.Env, "K="+strings.Repeat("\xff", 1000))
	}
	payload, err := wire.Encode(m)
	if err != nil || len(payload) > wire.MaxStart {
		t.Fatalf("%d bytes, %v", len(payload), err)
	}
}

func TestByteStringsRefuse(t *testing.T) {
	for name, arg := range map[string]string{
		"no base64": `"!"`, "not terminated": `"YQ=="`, "a list": `["a"]`, "number": `1`, "loose bits": `"YQB="`,
	} {
		t.Run(name, func(t *testing.T) {
			payload := `{"argv":` + arg + `,"env":"","dir":"/","timeout_ms":1,"finish_ms":0,"grace_ms":0}`
			_, err := wire.Decode[wire.Start](wire.Frame{Header: wire.Header{Type: wire.TypeStart}, Payload: []byte(payload)})
			if !errors.Is(err, wire.ErrPayload) {
				t.Error(err)
			}
		})
	}
}
