package server_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/api"
	"sandboxd/internal/job"
	"sandboxd/internal/server"
)

func TestDecodeRefuses(t *testing.T) {
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	for name, tc := range map[string]struct{ body, field, says string }{
		"nothing":                   {``, "", "not JSON at byte 0"},
		"a list":                    {`[]`, "", "is a list; want an object"},
		"text":                      {`"x"`, "", "is text; want an object"},
		"null":                      {`null`, "", "null is not a value"},
		"a byte order mark":         {"\xef\xbb\xbf{}", "", "byte order mark"},
		"data after it":             {`{"command":["a"]} x`, "", "not JSON at byte 19"},
		"a second object":           {`{}{}`, "", "after top-level value"},
		"invalid UTF-8":             {"{\"name\":\"\xff\"}", "", "not UTF-8 at byte 9"},
		"an overlong encoding":      {"{\"name\":\"\xc0\xaf\"}", "", "not UTF-8 at byte 9"},
		"an encoded surrogate":      {"{\"name\":\"\xed\xa0\x80\"}", "", "not UTF-8 at byte 9"},
		"a lone high surrogate":     {`{"name":"\ud800x"}`, "name", "half of a surrogate pair"},
		"a high one at the end":     {`{"name":"\ud800"}`, "name", "half of a surrogate pair"},
		"a lone low surrogate":      {`{"name":"\udc00"}`, "name", "half of a surrogate pair"},
		"two high surrogates":       {`{"name":"\ud800\ud800"}`, "name", "half of a surrogate pair"},
		"NaN":                       {`{"limits":{"cpus":NaN}}`, "", "not JSON at byte 19"},
		"a comment":                 {`{/* */}`, "", "not JSON"},
		"a trailing comma":          {`{"command":["a",]}`, "", "not JSON"},
		"single quotes":             {`{'command':[]}`, "", "not JSON"},
		"a control character":       {"{\"name\":\"a\nb\"}", "", "not JSON"},
		"an unknown field":          {`{"comand":["a"]}`, "comand", "unknown field; did you mean command?"},
		"one far from all":          {`{"frobnicate":1}`, "frobnicate", "unknown field"},
		"one with odd characters":   {`{"a b\u0000":1}`, `"a b\x00"`, "unknown field"},
		"an empty key":              {`{"":1}`, `""`, "unknown field"},
		"a case twin":               {`{"limits":{"Memory":1}}`, "limits.Memory", "did you mean memory?"},
		"both twins":                {`{"limits":{"memory":1,"MEMORY":2}}`, "limits.MEMORY", "did you mean memory?"},
		"a key twice":               {`{"name":"a","name":"a"}`, "name", "given twice"},
		"a key twice, once escaped": {`{"name":"a","na\u006de":"b"}`, "name", "given twice"},
		"a variable twice":          {`{"env":{"A":"1","A":"2"}}`, "env.A", "given twice"},
		"a nested typo":             {`{"limits":{"memroy":1}}`, "limits.memroy", "did you mean memory?"},
		"a typo in a list":          {`{"mounts":[{"source":"/a","name":"a"},{"src":"/b"}]}`, "mounts[1].src", "unknown field"},
		"a number for text":         {`{"name":5}`, "name", "is a number; want text"},
		"text for a list":           {`{"command":"ls -l"}`, "command", "is text; want a list"},
		"a list in a list":          {`{"command":["a",["b"]]}`, "command[1]", "is a list; want text"},
		"null in a list":            {`{"command":["a",null]}`, "command[1]", "null is not a value"},
		"null for an object":        {`{"limits":null}`, "limits", "null is not a value"},
		"null for an amount":        {`{"limits":{"memory":null}}`, "limits.memory", "null is not a value"},
		"text for a switch":         {`{"lease":"true"}`, "lease", "is text; want true or false"},
		"a fraction for a priority": {`{"priority":1.5}`, "priority", "not a whole number"},
		"an exponent":               {`{"priority":1e0}`, "priority", "not a whole number"},
		"an exponent in a count":    {`{"limits":{"pids":1e3}}`, "limits.pids", "not a whole number"},
		"text for a count":          {`{"limits":{"pids":"5"}}`, "limits.pids", "not a whole number"},
		"beyond 64 bits":            {`{"limits":{"pids":9223372036854775808}}`, "limits.pids", "not a whole number"},
		"1e999":                     {`{"limits":{"memory":1e999}}`, "limits.memory", "is not a size"},
		"a negative size":           {`{"limits":{"memory":-1}}`, "limits.memory", "is not a size"},
		"a size beyond all":         {`{"limits":{"memory":"9999999TiB"}}`, "limits.memory", "more than any size"},
		"too many decimals":         {`{"limits":{"cpus":0.0001}}`, "limits.cpus", "is not a number of cores"},
		"an object for an amount":   {`{"limits":{"memory":{}}}`, "limits.memory", "want a number or text"},
		"a span without unit":       {`{"timeout":"5 parsecs"}`, "timeout", "is not a span of time"},
		"base64 without padding":    {`{"stdin":"YQ"}`, "stdin", "not standard base64"},
		"base64 with loose bits":    {`{"stdin":"YR=="}`, "stdin", "not standard base64"},
		"base64 with a line break":  {`{"stdin":"YW\nFh"}`, "stdin", "line breaks"},
		"base64 of the URL kind":    {`{"stdin":"-_-_"}`, "stdin", "not standard base64"},
		"a fraction in a budget":    {`{"budget":{"tool_calls":1.5}}`, "budget.tool_calls", "not a whole number"},
		"NaN in a budget":           {`{"budget":{"cpu":NaN}}`, "", "not JSON"},
		"1e999 in a budget":         {`{"budget":{"cost_micro_usd":1e999}}`, "budget.cost_micro_usd", "not a whole number"},
		"a budget beyond 64 bits":   {`{"budget":{"output_bytes":9223372036854775808}}`, "budget.output_bytes", "more than any size"},
		"a negative budget of time": {`{"budget":{"wall":-1}}`, "budget.wall", "is not a span of time"},
		"a twin in a budget":        {`{"budget":{"cpu":1,"CPU":9}}`, "budget.CPU", "did you mean cpu?"},
		"a word for egress":         {`{"egress":"none"}`, "egress", "is text; want an object"},
		"rules for egress":          {`{"egress":{"mode":"enforce","allow":[]}}`, "egress.allow", "unknown field"},
		"null for delegates":        {`{"delegates":null}`, "delegates", "null is not a value"},
		"another parent":            {`{"parent":"0190"}`, "parent", "unknown field"},
		"another caller":            {`{"command":["a"],"job":"0190"}`, "job", "unknown field"},
		"a command of a project":    {`{"project":{"command":["a"]}}`, "project.command", "unknown field"},
		"a profile of a project":    {`{"project":{"profile":"wide"}}`, "project.profile", "unknown field"},
		"very deep":                 {deep, "", ""},
		"deep inside":               {`{"command":` + deep[:1000] + `"a"` + strings.Repeat("]", 1000) + `}`, "command[0]", "is a list; want text"},
		"too many keys":             {`{"env":{` + manyKeys(1100) + `}}`, "env.k1024", "one entry of more than 1024"},
	} {
		t.Run(name, func(t *testing.T) {
			var r api.JobRequest
			err := server.Decode([]byte(tc.body), &r)
			var e *job.Error
			if !errors.As(err, &e) || e.Code != job.CodeInvalid {
				t.Fatalf("error %v", err)
			}
			if e.Field != tc.field || !strings.Contains(e.Message, tc.says) || len(e.Message) > 200 {
				t.Errorf("field %q: %.300s", e.Field, e.Message)
			}
		})
	}
}

func manyKeys(n int) string {
	var keys []string
	for i := range n {
		keys = append(keys, fmt.Sprintf(`"k%d":""`, i))
	}
	return strings.Join(keys, ",")
}

func TestDecodeReadsEverything(t *testing.T) {
	var got api.JobRequest
	err := server.Decode([]byte(" \n{ \"command\" : [ \"sh\" , \"-c\" , \"echo \\ud83d\\ude00\\/\" ] , "+
		`"task":{"goal":"g"},"env":{"Path":"1","PATH":"2","":"x"},"stdin":"aGk=","limits":{"cpus":1.5,"memory":"1GiB","pids":7,
		"tmp_bytes":1024},"timeout":90,"labels":{},"priority":0,"lease":true,"mounts":[],"workspace":{"path":"/w"}}`+"\t"), &got)
	if err != nil {
		t.Fatal(err)
	}
	want := api.JobRequest{
		Command: []string{"sh", "-c", "echo 😀/"}, Task: &api.Task{Goal: "g"},
		Env: map[string]string{"Path": "1", "PATH": "2", "": "x"}, Stdin: []byte("hi"),
		Limits:  &api.Limits{CPUs: new(api.CPUs(1500)), Memory: new(api.Size(1 << 30)), Pids: new(api.Int(7)), TmpBytes: new(api.Size(1024))},
		Timeout: new(api.Duration(90e9)), Labels: map[string]string{}, Priority: new(0), Lease: true,
		Mounts: []api.Mount{}, Workspace: &api.Workspace{Path: "/w"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNearest(t *testing.T) {
	names := []string{"memory", "cpus", "pids", "name", "mounts", "state", "-", ""}
	for word, want := range map[string]string{
		"memroy": "memory", "Memory": "memory", "MEMORY": "memory", "cpu": "cpus", "mount": "mounts", "stat": "state",
		"pid": "pids", "x": "", "": "", "frob": "", strings.Repeat("memory", 20): "",
	} {
		if got := server.Nearest(word, names); got != want {
			t.Errorf("%q leads to %q, want %q", word, got, want)
		}
	}
}

// What Decode accepts is read the same by any other reader: no key twice, none that differs by case only where keys
// are fields, nothing left out, and the plain decoder sees the same request.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"command":["a"],"limits":{"cpus":"1.5","memory":1},"env":{"A":"b"},"stdin":"aGk=","timeout":"5m"}`,
		`{"command":["\ud83d\ude00\u0000"],"mounts":[{"source":"/a","name":"b"}],"labels":{"a":"b","A":"c"}}`,
		`{"name":"a","Name":"b"}`, `{"name":"a","name":"b"}`, `{"name":null}`, `{"priority":-0}`, "{}", "[", "\xef\xbb\xbf{}",
		`{"workspace":{"path":"/","mode":"rw"},"task":{"goal":"\\\""}}`, `{"na\u006de":"\ud800"}`, `{"stdin":"YR=="}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var got api.JobRequest
		if err := server.Decode(body, &got); err != nil {
			if job.CodeOf(err) != job.CodeInvalid {
				t.Fatalf("refused as %v", err)
			}
			return
		}
		meant := bytes.Contains(body, []byte("\ufffd")) || bytes.Contains(bytes.ToLower(body), []byte(`\ufffd`))
		if b, _ := json.Marshal(got); !meant && bytes.Contains(b, []byte("\ufffd")) {
			t.Fatalf("a character was replaced in %q", body)
		}
		var plain api.JobRequest
		if err := json.Unmarshal(body, &plain); err != nil || !reflect.DeepEqual(got, plain) {
			t.Fatalf("read plainly: %v\n%+v\n%+v", err, plain, got)
		}
		checkKeys(t, body)
		if got.Command == nil {
			got.Command = []string{} // Go writes null for it
		}
		again, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var second api.JobRequest
		if err := server.Decode(again, &second); err != nil {
			t.Fatalf("%v in its own form %s", err, again)
		}
		if _, err := server.ToRequest(got); err != nil {
			t.Fatal(err)
		}
	})
}

// checkKeys walks JSON with another reader and fails on a key twice, a null, or keys of fields that differ by case.
func checkKeys(t *testing.T, body []byte) {
	d := json.NewDecoder(bytes.NewReader(body))
	var path []string
	var walk func(isMap bool)
	walk = func(isMap bool) {
		tok, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		switch tok {
		case nil:
			t.Fatalf("null was accepted at %v in %q", path, body)
		case json.Delim('{'):
			seen := map[string]bool{}
			for d.More() {
				key, err := d.Token()
				if err != nil {
					t.Fatal(err)
				}
				name := key.(string)
				if !isMap {
					name = strings.ToLower(name)
				}
				if seen[name] {
					t.Fatalf("%q twice at %v in %q", name, path, body)
				}
				seen[name] = true
				path = append(path, name)
				walk(len(path) == 1 && (name == "env" || name == "labels"))
				path = path[:len(path)-1]
			}
			_, _ = d.Token()
		case json.Delim('['):
			for d.More() {
				walk(false)
			}
			_, _ = d.Token()
		}
	}
	walk(false)
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		t.Fatalf("more after the object in %q", body)
	}
}

func BenchmarkDecode(b *testing.B) {
	body := []byte(`{"command":["` + strings.Repeat(`abcdefgh","`, 20_000) + `z"],"env":{"A":"b"}}`)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		var r api.JobRequest
		if err := server.Decode(body, &r); err != nil {
			b.Fatal(err)
		}
	}
}
