package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// kindOf names a JSON value by its first byte.
func kindOf(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "text"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}

// wanted names what a Go type takes.
func wanted(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return "a number or text"
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "base64 text"
		}
		return "a list"
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	}
	return "a whole number"
}

// unquote reads a JSON string that is known to be sound.
func unquote(raw []byte) string {
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var s string
	_ = json.Unmarshal(raw, &s) // sound, so it cannot fail
	return s
}

// showKey writes a key from a request into an error: as it stands where it is harmless, quoted and cut otherwise.
func showKey(key string) string {
	if len(key) > 0 && len(key) <= 64 && strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == "" {
		return key
	}
	return fmt.Sprintf("%.64q", key)
}

// nearest returns the name that was probably meant, or nothing.
func nearest(word string, names []string) string {
	if len(word) > 64 {
		return ""
	}
	best, bestAt := "", 3 // more than two slips is another word
	for _, name := range names {
		if name == "" || name == "-" {
			continue
		}
		if strings.EqualFold(name, word) {
			return name
		}
		if d := slips(strings.ToLower(word), name); d < bestAt && d*2 < len(name) {
			best, bestAt = name, d
		}
	}
	return best
}

// slips counts the single-byte insertions, deletions and replacements, and swaps of neighbours, between two words.
func slips(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
