package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestCleanEscapesWhatATerminalObeys(t *testing.T) {
	for in, want := range map[string]string{
		"plain ünï 漢字":            "plain ünï 漢字",
		"\x1b[31mred\x1b[0m":      `\x1b[31mred\x1b[0m`,
		"\x1b]0;title\x07":        `\x1b]0;title\a`,
		"a\nb\tc\rd":              `a\nb\tc\rd`,
		"nul\x00":                 `nul\x00`,
		"bad\xff\xfe":             `bad\xff\xfe`,
		"\u202eabc\u2066":         `\u202eabc\u2066`,
		"c1 \u009b31m":            `c1 \u009b31m`,
		"zero\u200bwidth":         `zero\u200bwidth`,
		"it's a \"quote\" and \\": "it's a \"quote\" and \\",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) is %q, want %q", in, got, want)
		}
	}
	if got := cleanLines("a\n\tb\x1b\r"); got != "a\n\tb\\x1b\\r" {
		t.Errorf("cleanLines keeps newlines and tabs alone, got %q", got)
	}
}

func TestJSONIsSafeToShowAndTheSameDocument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := map[string]string{"a": strings.ToValidUTF8(rapid.String().Draw(t, "text")+"\u202e\u009b\U000e0001\x7f", "")}
		b, err := marshal(in, "  ")
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(string(b), "\u202e\u009b\x7f\x1b") {
			t.Errorf("%q is not safe", b)
		}
		var out map[string]string
		if err := json.Unmarshal(b, &out); err != nil || out["a"] != in["a"] {
			t.Errorf("%q came back as %q, %v", in, out, err)
		}
	})
}

// Every line gets its prefix once, however the output was cut into pieces.
func TestPrefixedLinesDoNotDependOnPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab\n")), 0, 200, -1).Draw(t, "text")
		var got bytes.Buffer
		l := &lineWriter{w: &got, prefix: []byte("> ")}
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			if _, err := l.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := l.flush(); err != nil {
			t.Fatal(err)
		}
		want := ""
		for line := range strings.Lines(text) {
			want += "> " + strings.TrimSuffix(line, "\n") + "\n"
		}
		if got.String() != want {
			t.Errorf("%q became %q, want %q", text, got.String(), want)
		}
	})
}

func TestALineWithoutEndIsBroken(t *testing.T) {
	var got bytes.Buffer
	l := &lineWriter{w: &got, prefix: []byte("> ")}
	for range 3 {
		_, _ = l.Write(bytes.Repeat([]byte("x"), maxLine))
	}
	if n := strings.Count(got.String(), "> "); n != 3 || len(l.line) != 0 || cap(l.line) > 2*maxLine {
		t.Errorf("%d lines, %d bytes held back in a buffer of %d", n, len(l.line), cap(l.line))
	}
}

// A shell reads a shown command line as the command again.
func TestCommandLinesAreQuotedForAShell(t *testing.T) {
	command := []string{"printf", `%s\n`, "a b", "", "it's", "$HOME", "`x`", "a\\b", "*", "~", "#c", "!d"}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", commandLine(command)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Join(command[2:], "\n") + "\n"; string(out) != want {
		t.Errorf("the shell printed %q, want %q", out, want)
	}
}

func TestAmountsForPeople(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 3 << 30: "3.0 GiB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) is %q, want %q", n, got, want)
		}
	}
	for ms, want := range map[int64]string{7: "7ms", 1234: "1.23s", 61_049: "1m1s"} {
		if got := span(ms); got != want {
			t.Errorf("span(%d) is %q, want %q", ms, got, want)
		}
	}
	now := time.Unix(1_000_000, 0)
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 90 * time.Second: "90s", 90 * time.Minute: "90m", 47 * time.Hour: "47h", 72 * time.Hour: "3d",
	} {
		if got := ago(now.Add(-d).UnixMilli(), now); got != want {
			t.Errorf("ago %s is %q, want %q", d, got, want)
		}
	}
}

func TestNearestNames(t *testing.T) {
	names := []string{"memory", "mount", "name", "timeout", "detach"}
	for word, want := range map[string]string{
		"memroy": "memory", "mem": "memory", "tiemout": "timeout", "nmae": "name", "detatch": "detach", "xyz": "", "m": "",
	} {
		if got := nearest(word, names); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}
