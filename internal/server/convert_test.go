package server_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/api"
	"sandboxd/internal/admission"
	"sandboxd/internal/job"
	"sandboxd/internal/server"
	"sandboxd/internal/store"
)

// fill sets every field of a value to something that is not its zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"seen":true}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	default:
		panic("fill does not know " + v.Type().String())
	}
}

func asMap(t *testing.T, v any) map[string]any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// contains fails for every key of part that whole lacks or holds with another value.
func contains(t *testing.T, what string, whole, part map[string]any) {
	t.Helper()
	for key, want := range part {
		if diff := cmp.Diff(want, whole[key]); diff != "" {
			t.Errorf("%s.%s is forgotten or changed:\n%s", what, key, diff)
		}
	}
}

// A field added to job.Outcome, job.Result or job.Times must reach the wire under the same name.
func TestNothingOfAResultIsForgotten(t *testing.T) {
	var j job.Job
	fill(reflect.ValueOf(&j).Elem())
	got, err := server.FromResult(j)
	if err != nil {
		t.Fatal(err)
	}
	shown := asMap(t, got)
	contains(t, "outcome", shown, asMap(t, j.Outcome))
	kept := asMap(t, j.Result)
	delete(kept, "gate") // shown with the job, as the evidence of its slot
	contains(t, "result", shown, kept)
	contains(t, "times", shown["timings"].(map[string]any), asMap(t, j.Times))
	if got.Schema != api.ResultSchema || got.Job != "text" || got.Root != "text" || got.Parent != "text" || got.ParentSession != "text" {
		t.Errorf("%+v", got)
	}
	if got.RunExit != j.Outcome.RunExit() || got.StatusExit != j.Outcome.StatusExit() {
		t.Errorf("exits %d %d", got.RunExit, got.StatusExit)
	}
}

// notShown are fields of the record that callers do not see, with the reason.
var notShown = map[string]string{
	"OwnerUID": "in Owner", "OwnerGID": "the caller's own", "Groups": "the caller's own",
	"Envelope": "shown by Status.EnvelopeFields", "Attempt": "of the daemon", "Node": "of the daemon", "Epoch": "of the daemon",
	"CancelKill": "of the daemon", "IdempotencyKey": "a key of the caller's program",
	"Spec.Task": "payload", "Spec.StdinData": "payload", "Spec.Agent": "for the agent; all but the model are shown by Status.EnvelopeFields",
	"Grants": "the limits of its budget's lines", "Clamped": "told by the event of its admission",
}

// A field added to job.Job or job.Spec must be shown, or be listed above.
func TestNothingOfAJobIsForgotten(t *testing.T) {
	blank := server.FromJobDetailed(job.Job{})
	check := func(name string, set func(*job.Job)) {
		var j job.Job
		set(&j)
		shown := !reflect.DeepEqual(server.FromJobDetailed(j), blank)
		if _, hidden := notShown[name]; shown == hidden {
			t.Errorf("%s: shown %v, listed as hidden %v", name, shown, hidden)
		}
	}
	for f := range reflect.TypeFor[job.Job]().Fields() {
		if f.Name != "Spec" {
			check(f.Name, func(j *job.Job) { fill(reflect.ValueOf(j).Elem().FieldByIndex(f.Index)) })
		}
	}
	for f := range reflect.TypeFor[job.Spec]().Fields() {
		check("Spec."+f.Name, func(j *job.Job) { fill(reflect.ValueOf(&j.Spec).Elem().FieldByIndex(f.Index)) })
	}
}

func TestAJobThatNeverRanHasAResult(t *testing.T) {
	got, err := server.FromResult(job.Job{
		Owner: "uid:5", Outcome: &job.Outcome{Status: job.Cancelled, Reason: job.ReasonByCaller},
		Spec: job.Spec{Role: "reviewer", Skills: []string{"go"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := api.Result{
		Schema: api.ResultSchema, Outcome: api.Outcome{Status: "cancelled", Reason: "by_caller", RunExit: 123, StatusExit: 1},
		Delegation: &api.Delegation{Role: "reviewer", Skills: []string{"go"}, Source: "uid:5"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if usage := asMap(t, got)["usage"].(map[string]any); len(usage) != 0 {
		t.Errorf("unavailable usage is shown: %v", usage)
	}
	if _, err := server.FromResult(job.Job{State: job.Done}); job.CodeOf(err) != job.CodeInternal {
		t.Errorf("done without outcome: %v", err)
	}
}

func TestNothingOfAnEventIsForgotten(t *testing.T) {
	var e store.Event
	fill(reflect.ValueOf(&e).Elem())
	contains(t, "event", asMap(t, server.FromEvent(e)), asMap(t, e))
}

// Every field of a request reaches admission: set alone, it changes what admission gets, beside the hash.
func TestNothingOfARequestIsForgotten(t *testing.T) {
	request := func(set func(*api.JobRequest)) admission.Request {
		var r api.JobRequest
		set(&r)
		out, err := server.ToRequest(r)
		if err != nil {
			t.Fatal(err)
		}
		out.BodyHash = ""
		return out
	}
	blank := request(func(*api.JobRequest) {})
	for f := range reflect.TypeFor[api.JobRequest]().Fields() {
		got := request(func(r *api.JobRequest) { fill(reflect.ValueOf(r).Elem().FieldByIndex(f.Index)) })
		if reflect.DeepEqual(got, blank) {
			t.Errorf("%s does not reach admission", f.Name)
		}
	}
	var all api.JobRequest
	fill(reflect.ValueOf(&all).Elem())
	full, err := server.ToRequest(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []reflect.Value{
		reflect.ValueOf(full), reflect.ValueOf(full.Limits), reflect.ValueOf(full.Tools), reflect.ValueOf(full.Budget),
		reflect.ValueOf(*full.Egress), reflect.ValueOf(*full.Project), reflect.ValueOf(full.Project.Limits),
		reflect.ValueOf(full.Project.Tools), reflect.ValueOf(full.Project.Budget),
	} {
		for f, field := range v.Fields() {
			if field.IsZero() {
				t.Errorf("%s.%s stays empty", v.Type(), f.Name)
			}
		}
	}
	for f := range reflect.TypeFor[api.Limits]().Fields() {
		got := request(func(r *api.JobRequest) {
			r.Limits = &api.Limits{}
			fill(reflect.ValueOf(r.Limits).Elem().FieldByIndex(f.Index))
		})
		if n := countSet(got.Limits); n != 1 {
			t.Errorf("limits.%s sets %d amounts", f.Name, n)
		}
	}
}

func countSet(v any) (n int) {
	for _, field := range reflect.ValueOf(v).Fields() {
		if !field.IsZero() {
			n++
		}
	}
	return n
}

// Each amount of a budget arrives alone, at its own place and in its own unit.
func TestBudgetsReachAdmission(t *testing.T) {
	for f := range reflect.TypeFor[api.Budget]().Fields() {
		r := api.JobRequest{Budget: &api.Budget{}}
		fill(reflect.ValueOf(r.Budget).Elem().FieldByIndex(f.Index))
		got, err := server.ToRequest(r)
		if n := countSet(got.Budget); err != nil || n != 1 {
			t.Errorf("budget.%s sets %d amounts, %v", f.Name, n, err)
		}
	}
	var r api.JobRequest
	body := `{"budget":{"wall":"1m","cpu":2,"egress_bytes":"1KiB","output_bytes":3,"artifact_bytes":4,"input_tokens":5,
		"output_tokens":6,"tool_calls":7,"cost_micro_usd":8,"strict":true,"inherit":"operator"}}`
	if err := server.Decode([]byte(body), &r); err != nil {
		t.Fatal(err)
	}
	got, err := server.ToRequest(r)
	if err != nil {
		t.Fatal(err)
	}
	n := func(v int64) *int64 { return &v }
	want := admission.Budget{
		WallMS: n(60_000), CPUMS: n(2000), EgressBytes: n(1024), OutputBytes: n(3), ArtifactBytes: n(4), InputTokens: n(5),
		OutputTokens: n(6), ToolCalls: n(7), CostMicroUSD: n(8), Strict: true, Inherit: "operator",
	}
	if diff := cmp.Diff(want, got.Budget); diff != "" {
		t.Error(diff)
	}
}

// A list that is empty is another request than one that is left out, on its way from the client too.
func TestEmptyListsArriveEmpty(t *testing.T) {
	sent := api.JobRequest{Command: []string{"x"}, Delegates: []string{}, Secrets: []string{}, EnvInherit: []string{}, Tools: &api.Tools{Allow: []string{}}}
	body, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	var r api.JobRequest
	if err := server.Decode(body, &r); err != nil {
		t.Fatal(err)
	}
	got, err := server.ToRequest(r)
	if err != nil {
		t.Fatal(err)
	}
	for name, list := range map[string][]string{"delegates": got.Delegates, "secrets": got.Secrets, "env_inherit": got.EnvInherit, "tools.allow": got.Tools.Allow} {
		if list == nil || len(list) != 0 {
			t.Errorf("%s is %#v", name, list)
		}
	}
	if got.Tools.Deny != nil {
		t.Errorf("tools.deny is %#v", got.Tools.Deny)
	}
	absent, err := server.ToRequest(api.JobRequest{Command: []string{"x"}})
	if err != nil || absent.Delegates != nil || absent.BodyHash == got.BodyHash {
		t.Errorf("absent: %#v, %v", absent.Delegates, err)
	}
}

func TestToRequest(t *testing.T) {
	got, err := server.ToRequest(api.JobRequest{
		Env: map[string]string{"B": "2", "A": "1", "C": ""}, Limits: &api.Limits{CPUs: new(api.CPUs(1500))},
		Timeout: new(api.Duration(1_000_000_001)), Workspace: &api.Workspace{Path: "/w"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Env, []job.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}, {Name: "C"}}) {
		t.Errorf("env %v", got.Env)
	}
	if *got.Limits.MilliCPUs != 1500 || got.Limits.Memory != nil || *got.TimeoutMS != 1001 || got.Workspace.Mode != "" || got.Priority != nil {
		t.Errorf("%+v", got)
	}
}

// Two spellings of one request have the same hash, whatever their idempotency key; another request has another.
func TestBodyHash(t *testing.T) {
	hash := func(body string) string {
		t.Helper()
		var r api.JobRequest
		if err := server.Decode([]byte(body), &r); err != nil {
			t.Fatal(err)
		}
		out, err := server.ToRequest(r)
		if err != nil {
			t.Fatal(err)
		}
		return out.BodyHash
	}
	a := hash(`{"command":["x"],"env":{"A":"1","B":"2"},"limits":{"memory":"1KiB"},"timeout":60,"idempotency_key":"k1"}`)
	b := hash(`{"idempotency_key":"k2","timeout":"1m","limits":{"memory":1024},"env":{"B":"2","\u0041":"1"},"command":["x"]}`)
	if a != b || len(a) != 64 {
		t.Errorf("%s and %s", a, b)
	}
	for _, other := range []string{
		`{"command":["x","y"],"env":{"A":"1","B":"2"},"limits":{"memory":"1KiB"},"timeout":60}`,
		`{"command":["x"],"env":{"A":"1","B":"3"},"limits":{"memory":"1KiB"},"timeout":60}`,
		`{"command":["x"],"env":{"A":"1","B":"2"},"limits":{"memory":"1KiB"},"timeout":61}`,
	} {
		if hash(other) == a {
			t.Errorf("%s has the same hash", other)
		}
	}
	if strings.ToLower(a) != a {
		t.Error("not lower case")
	}
}
