package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// One strict reader for files of both formats: an unknown field, one of another case, a wrong type and a bad amount are
// errors that name the field.

func tomlAsJSON(raw []byte) ([]byte, error) {
	var fields map[string]any
	if err := toml.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// strict fills out, a pointer to a struct, from one JSON object.
func strict(raw []byte, out any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(out); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind the end of the object")
	}
	return exactKeys(raw, reflect.TypeOf(out).Elem())
}

// exactKeys refuses keys that differ from a field's name in case, which the decoder takes.
func exactKeys(raw []byte, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Slice:
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return nil // bytes, as text
		}
		for _, item := range items {
			if err := exactKeys(item, t.Elem()); err != nil {
				return err
			}
		}
	case reflect.Struct:
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil {
			return nil // the decoder took it, so it reads itself
		}
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			f, ok := fieldOf(t, key)
			if !ok {
				return fmt.Errorf("unknown field %q", key)
			}
			if err := exactKeys(fields[key], f.Type); err != nil {
				return err
			}
		}
	}
	return nil
}

// blame finds the field of an object of type t that an error is about, by reading the fields one at a time, and says it
// in our words.
func blame(raw []byte, t reflect.Type, err error) error {
	read := func(b []byte) error { return strict(b, reflect.New(t).Interface()) }
	var path []string
	for {
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil || len(fields) == 0 {
			break
		}
		found := false
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			one, _ := json.Marshal(map[string]json.RawMessage{key: fields[key]}) // was JSON a moment ago
			if e := read(wrapAll(path, one)); e != nil {
				path, raw, err, found = append(path, key), fields[key], e, true
				break
			}
		}
		if !found || !known(t, path) {
			break
		}
	}
	return explain(path, t, err)
}

// wrapAll puts an object into the objects above it.
func wrapAll(path []string, b []byte) []byte {
	for _, key := range slices.Backward(path) {
		b, _ = json.Marshal(map[string]json.RawMessage{key: b}) // a key and JSON
	}
	return b
}

func explain(path []string, t reflect.Type, err error) error {
	where := strings.Join(path, ".")
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &wrong):
		return fmt.Errorf("%s: a %s where %s is needed", where, wrong.Value, kindName(wrong.Type))
	case errors.As(err, &syntax):
		return fmt.Errorf("byte %d: %w", syntax.Offset, err)
	case where == "":
		return err
	case !known(t, path):
		e := "there is no field " + where
		if near := nearest(path[len(path)-1], fieldNames(t, path[:len(path)-1])); near != "" {
			e += "; did you mean " + near + "?"
		}
		return errors.New(e)
	}
	return fmt.Errorf("%s: %w", where, err)
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a table"
	}
	return "a number"
}

// fieldNames lists the fields of the object at path.
func fieldNames(t reflect.Type, path []string) []string {
	for _, key := range path {
		f, ok := fieldOf(t, key)
		if !ok {
			return nil
		}
		for t = f.Type; t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice; {
			t = t.Elem()
		}
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if name := jsonName(f); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func known(t reflect.Type, path []string) bool {
	names := fieldNames(t, path[:len(path)-1])
	return names == nil || slices.Contains(names, path[len(path)-1])
}

func fieldOf(t reflect.Type, key string) (reflect.StructField, bool) {
	if t.Kind() != reflect.Struct {
		return reflect.StructField{}, false
	}
	for _, f := range reflect.VisibleFields(t) {
		if jsonName(f) == key {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
