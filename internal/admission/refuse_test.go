package admission_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/admission"
	"sandboxd/internal/job"
)

// refusal is a request that must be refused: with which code, for which field, in words that hold these.
type refusal struct {
	name  string
	spoil func(*admission.Request)
	code  job.Code
	field string
	says  string
}

func refuse(t *testing.T, cases []refusal) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a, err := check(newWorld(), alice, with(c.spoil))
			var e *job.Error
			if !errors.As(err, &e) {
				t.Fatalf("%v", err)
			}
			if e.Code != c.code || e.Field != c.field || !strings.Contains(e.Message, c.says) {
				t.Errorf("%s for %q: %s", e.Code, e.Field, e.Message)
			}
			if len(e.Error()) > 1000 || strings.ContainsAny(e.Error()+e.Hint, "\n\x00\x1b") {
				t.Errorf("the message is not one short line: %d bytes, %.200q", len(e.Error()), e.Error())
			}
			if h := e.Code.HTTPStatus(); h < 400 || h >= 500 {
				t.Errorf("answered with %d", h)
			}
			if !cmp.Equal(a, admission.Admitted{}) {
				t.Errorf("the refusal left %+v", a)
			}
		})
	}
}

func env(name, value string) func(*admission.Request) {
	return func(r *admission.Request) { r.Env = []job.EnvVar{{Name: "OK", Value: "1"}, {Name: name, Value: value}} }
}

func command(argv ...string) func(*admission.Request) {
	return func(r *admission.Request) { r.Command = argv }
}

func TestCommandIsRefused(t *testing.T) {
	refuse(t, []refusal{
		{"none", command(), job.CodeInvalid, "command", "no command"},
		{"empty program", command("", "x"), job.CodeInvalid, "command", "no command"},
		{"NUL in the program", command("a\x00b"), job.CodeInvalid, "command", "argument 0 contains a NUL byte"},
		{"NUL in an argument", command("a", "b", "\x00"), job.CodeInvalid, "command", "argument 2 contains a NUL byte"},
		{"2 MB in one argument", command("a", strings.Repeat("x", 2e6)), job.CodeTooLarge, "command", "argument 1 has 2000000 bytes"},
		{"one byte more than a string may have", command("a", strings.Repeat("x", 128*kib)), job.CodeTooLarge, "command", "one string may have 131071"},
		{"2 MB in many arguments", command(strings.Split(strings.Repeat("xxxxxxxxx ", 2e5), " ")...), job.CodeTooLarge, "command", "at most 1048576"},
		{"many empty arguments", command(append([]string{"a"}, make([]string, mib)...)...), job.CodeTooLarge, "command", "at most 1048576"},
		{"large together with the environment", func(r *admission.Request) {
			for i := range 9 {
				r.Env = append(r.Env, job.EnvVar{Name: fmt.Sprint("V", i), Value: strings.Repeat("x", 120_000)})
			}
		}, job.CodeTooLarge, "command", "environment"},
		{"2 MB on stdin", func(r *admission.Request) { r.Stdin = make([]byte, 2e6) }, job.CodeTooLarge, "stdin", "2000000 bytes"},
		{"bytes and a stream", func(r *admission.Request) { r.Stdin, r.StdinStream = []byte("x"), true }, job.CodeInvalid, "stdin", "choose one"},
	})
}

func TestTheLargestCommandPasses(t *testing.T) {
	longest := strings.Repeat("x", 128*kib-1)
	r := with(command("a", longest))
	// argv strings with their NUL fill the rest of 1 MiB exactly.
	total := 2 + len(longest) + 1
	for total < mib {
		s := longest[:min(len(longest), mib-total-1)]
		r.Command = append(r.Command, s)
		total += len(s) + 1
	}
	if _, err := check(newWorld(), alice, r); err != nil {
		t.Error(err)
	}
	r.Command = append(r.Command, "")
	if _, err := check(newWorld(), alice, r); job.CodeOf(err) != job.CodeTooLarge {
		t.Errorf("one byte more: %v", err)
	}
}

func TestEnvironmentIsRefused(t *testing.T) {
	many := func(r *admission.Request) {
		for i := range 257 {
			r.Env = append(r.Env, job.EnvVar{Name: fmt.Sprintf("V%03d", i)})
		}
	}
	cases := []refusal{
		{"257 of them", many, job.CodeInvalid, "env", "257 variables, at most 256"},
		{"no name", env("", "x"), job.CodeInvalid, "env", "not a variable's name"},
		{"= in the name", env("A=B", "x"), job.CodeInvalid, "env", `"A=B" is not a variable's name`},
		{"NUL in the name", env("A\x00", "x"), job.CodeInvalid, "env", `"A\x00" is not`},
		{"newline in the name", env("A\nB", "x"), job.CodeInvalid, "env", `"A\nB" is not`},
		{"escape in the name", env("A\x1b[2J", "x"), job.CodeInvalid, "env", "is not a variable's name"},
		{"C1 control in the name", env("A\u0085", "x"), job.CodeInvalid, "env", "is not a variable's name"},
		{"bad UTF-8 in the name", env("A\xff", "x"), job.CodeInvalid, "env", `"A\xff" is not`},
		{"NUL in the value", env("A", "x\x00y"), job.CodeInvalid, "env.A", "the value contains a NUL byte"},
		{"long value", env("A", strings.Repeat("x", 128*kib)), job.CodeTooLarge, "env.A", "131074 bytes, one variable may have 131071"},
		{"long name", env(strings.Repeat("N", 128*kib), "x"), job.CodeTooLarge, "env." + strings.Repeat("N", 64), "one variable may have"},
		{"long name with NUL in the value", env(strings.Repeat("N", 100_000), "\x00"), job.CodeInvalid, "env." + strings.Repeat("N", 64), "NUL"},
		{"ours", env("SANDBOXD_JOB", "x"), job.CodeInvalid, "env.SANDBOXD_JOB", "set by the daemon"},
		{"ours to be", env("SANDBOXD_", "x"), job.CodeInvalid, "env.SANDBOXD_", "set by the daemon"},
		{"ours in other letters", env("sandboxd_Token", "x"), job.CodeInvalid, "env.sandboxd_Token", "set by the daemon"},
		{"twice", env("OK", "2"), job.CodeInvalid, "env.OK", "given twice"},
	}
	for _, name := range []string{"http_proxy", "HTTP_PROXY", "Https_Proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "ftp_proxy"} {
		cases = append(cases, refusal{name, env(name, "x"), job.CodeInvalid, "env." + name, "egress policy"})
	}
	refuse(t, cases)
}

func TestWordsAreRefused(t *testing.T) {
	long := strings.Repeat("ü", 256)
	var cases []refusal
	for field, set := range map[string]func(*admission.Request, string){
		"role":            func(r *admission.Request, s string) { r.Role = s },
		"parent_session":  func(r *admission.Request, s string) { r.Session = s },
		"idempotency_key": func(r *admission.Request, s string) { r.IdempotencyKey = s },
		"skills":          func(r *admission.Request, s string) { r.Skills = []string{"ok", s} },
	} {
		for what, s := range map[string]string{"NUL": "a\x00", "newline": "a\nb", "escape": "\x1b]0;x\x07", "DEL": "\x7f", "bad UTF-8": "\xc3("} {
			cases = append(cases, refusal{field + " with " + what, func(r *admission.Request) { set(r, s) }, job.CodeInvalid, field, "control characters or invalid UTF-8"})
		}
		cases = append(cases, refusal{"long " + field, func(r *admission.Request) { set(r, long) }, job.CodeInvalid, field, "256 characters, at most 255"})
	}
	for what, s := range map[string]string{"dash first": "-a", "dot": ".", "slash": "a/b", "space": "a b", "newline": "a\n", "NUL": "a\x00", "64 characters": strings.Repeat("a", 64), "umlaut": "ä", "huge": strings.Repeat("a", 1e6)} {
		cases = append(cases, refusal{"name with " + what, func(r *admission.Request) { r.Name = s }, job.CodeInvalid, "name", "is not a name"})
	}
	cases = append(cases,
		refusal{"65 skills", func(r *admission.Request) { r.Skills = make([]string, 65) }, job.CodeInvalid, "skills", "65, at most 64"},
		refusal{"2 MB task", func(r *admission.Request) { r.Task = &job.Task{Goal: strings.Repeat("x", 2e6)} }, job.CodeTooLarge, "task", "2000000 bytes, at most 1048576"},
		refusal{"task too large in parts", func(r *admission.Request) {
			r.Task = &job.Task{Goal: strings.Repeat("x", mib/2), Context: strings.Repeat("x", mib/2), Guidance: "x"}
		}, job.CodeTooLarge, "task", "at most 1048576"})
	refuse(t, cases)
}

func TestLabelsAreRefused(t *testing.T) {
	many := map[string]string{}
	for i := range 65 {
		many[fmt.Sprint(i)] = ""
	}
	cases := []refusal{
		{"65 of them", func(r *admission.Request) { r.Labels = many }, job.CodeInvalid, "labels", "65, at most 64"},
		{"value of 256", func(r *admission.Request) { r.Labels = map[string]string{"k": strings.Repeat("v", 256)} }, job.CodeInvalid, "labels.k", "at most 255"},
		{"value with a newline", func(r *admission.Request) { r.Labels = map[string]string{"k": "a\nb"} }, job.CodeInvalid, "labels.k", "control"},
		{"value with NUL", func(r *admission.Request) { r.Labels = map[string]string{"k": "\x00"} }, job.CodeInvalid, "labels.k", "control"},
		{"value of bad UTF-8", func(r *admission.Request) { r.Labels = map[string]string{"k": "\xff"} }, job.CodeInvalid, "labels.k", "control"},
	}
	for what, k := range map[string]string{"empty": "", "64 characters": strings.Repeat("k", 64), "=": "a=b", "newline": "a\n", "NUL": "\x00", "bad UTF-8": "\xff", "huge": strings.Repeat("k", 1e6)} {
		cases = append(cases, refusal{"key: " + what, func(r *admission.Request) { r.Labels = map[string]string{k: "v"} }, job.CodeInvalid, "labels", "is not a label's key"})
	}
	refuse(t, cases)
	ok := map[string]string{strings.Repeat("ü", 63): strings.Repeat("ü", 255)}
	if _, err := check(newWorld(), alice, with(func(r *admission.Request) { r.Labels = ok })); err != nil {
		t.Error(err)
	}
}

func TestModesAreRefused(t *testing.T) {
	refuse(t, []refusal{
		{"agent results", func(r *admission.Request) { r.Result = "agent" }, job.CodeInvalid, "result", "not served by this version"},
		{"a result of no kind", func(r *admission.Request) { r.Result = "EXIT" }, job.CodeInvalid, "result", `"EXIT" is not a kind`},
		{"priority below", func(r *admission.Request) { r.Priority = p(-1) }, job.CodeInvalid, "priority", "-1 is out of range"},
		{"priority above", func(r *admission.Request) { r.Priority = p(10) }, job.CodeInvalid, "priority", "10 is out of range"},
		{"priority far above", func(r *admission.Request) { r.Priority = p(math.MaxInt) }, job.CodeInvalid, "priority", "out of range"},
		{"relative workdir", func(r *admission.Request) { r.Workdir = "src" }, job.CodeInvalid, "workdir", "not an absolute path"},
		{"workdir with NUL", func(r *admission.Request) { r.Workdir = "/a\x00" }, job.CodeInvalid, "workdir", "not an absolute path"},
		{"long workdir", func(r *admission.Request) { r.Workdir = "/" + strings.Repeat("x", 4095) }, job.CodeInvalid, "workdir", "not an absolute path"},
		{"a profile nobody made", func(r *admission.Request) { r.Profile = "root" }, job.CodeNotInRoster, "profile", `there is no profile "root"; there are: default, small`},
		{"a profile of another case", func(r *admission.Request) { r.Profile = "Default" }, job.CodeNotInRoster, "profile", "there is no profile"},
		{"a profile with controls", func(r *admission.Request) { r.Profile = "\x1b\n" + strings.Repeat("x", 1e6) }, job.CodeNotInRoster, "profile", "there is no profile"},
	})
}
