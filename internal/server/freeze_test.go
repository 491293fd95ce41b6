package server_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/api"
	"sandboxd/internal/job"
)

func TestFreezeAndThaw(t *testing.T) {
	o := &operator{}
	c := newClan(t, withOperator(o))
	admin := c.as(0)
	ask := func(path, body string) (list api.FreezeList) {
		t.Helper()
		admin.do("POST", path, body).want(200).into(&list)
		return list
	}
	if list := ask("/v1/freeze", `{"scope":"all"}`); len(list.Freezes) != 1 || list.Freezes[0].By != "uid:0" {
		t.Errorf("%+v", list)
	}
	ask("/v1/freeze", `{"scope":"profile","name":"builder"}`)
	ask("/v1/freeze", `{"scope":"tree","name":"bb"}`) // any job of it
	var list api.FreezeList
	admin.get("/v1/freeze").want(200).into(&list)
	if len(list.Freezes) != 3 || list.Freezes[2].Name != c.id("root") {
		t.Errorf("%+v", list)
	}
	ask("/v1/thaw", `{"scope":"all"}`)
	ask("/v1/thaw", `{"scope":"tree","name":"root"}`)
	gone := "01900000-0000-7000-8000-000000000000"
	if list := ask("/v1/thaw", `{"scope":"tree","name":"`+gone+`"}`); len(list.Freezes) != 1 {
		t.Errorf("%+v", list)
	}
	ask("/v1/thaw", `{"scope":"profile","name":"builder"}`)
	want := []string{"freeze all ", "freeze profile builder", "freeze tree " + c.id("root"), "thaw all ", "thaw tree " + c.id("root"), "thaw tree " + gone, "thaw profile builder"}
	if diff := cmp.Diff(want, o.noted()); diff != "" {
		t.Error(diff)
	}
	if got := admin.get("/v1/freeze").want(200); strings.TrimSpace(string(got.body)) != `{"freezes":[]}` {
		t.Errorf("%s", got.body)
	}
}

func TestFreezeRefusals(t *testing.T) {
	o := &operator{}
	c := newClan(t, withOperator(o))
	for body, field := range map[string]string{
		`{}`:                                 "scope",
		`{"scope":"everything"}`:             "scope",
		`{"scope":"All"}`:                    "scope",
		`{"scope":"all","name":"x"}`:         "name",
		`{"scope":"profile"}`:                "name",
		`{"scope":"profile","name":"a b"}`:   "name",
		`{"scope":"tree","name":"../x"}`:     "name",
		`{"scope":"all","force":true}`:       "force",
		`{"scope":"profile","name":["a"]}`:   "name",
		`{"scope":"profile","scope":"all"}`:  "scope",
		`{"scope":"profile","name":"a"} yes`: "",
	} {
		for _, path := range []string{"/v1/freeze", "/v1/thaw"} {
			if p := c.as(0).do("POST", path, body).problem(400, job.CodeInvalid); p.Field != field {
				t.Errorf("%s: field %q", body, p.Field)
			}
		}
	}
	c.as(0).do("POST", "/v1/freeze", `{"scope":"tree","name":"01900000-0000-7000-8000-000000000000"}`).problem(404, job.CodeNotFound)
	c.as(0).do("POST", "/v1/freeze", strings.Repeat(" ", 5000)+"{}").problem(413, job.CodeTooLarge)
	if len(o.noted()) != 0 {
		t.Errorf("%v", o.noted())
	}
}

// Freezing is for admins on the host socket: not for others there, and never for a job, not even root's.
func TestFreezingIsTheOperators(t *testing.T) {
	o := &operator{}
	c := newClan(t, withOperator(o))
	roots := c.daemon.add(0)
	for name, who := range map[string]*client{"a user": c.as(alice), "a job": c.asJob(c.jobs["a"]), "a job of root": c.asJob(roots)} {
		for _, path := range []string{"/v1/freeze", "/v1/thaw"} {
			if p := who.do("POST", path, `{"scope":"all"}`).problem(403, job.CodeForbidden); !strings.Contains(p.Detail, "the operator's") {
				t.Errorf("%s: %+v", name, p)
			}
		}
		who.get("/v1/freeze").problem(403, job.CodeForbidden)
	}
	if len(o.noted()) != 0 {
		t.Errorf("%v", o.noted())
	}
	if p := newRig(t).as(0).get("/v1/freeze").problem(403, job.CodeForbidden); !strings.Contains(p.Detail, "does not serve") {
		t.Errorf("%+v", p)
	}
}
