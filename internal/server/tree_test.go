package server_test

import (
	"strings"
	"testing"

	"sandboxd/api"
	"sandboxd/internal/job"
)

func TestTree(t *testing.T) {
	c := newClan(t, withOperator(&operator{}))
	c.daemon.finish(c.jobs["aa"].ID)
	outline := func(who *client, ref string) string {
		t.Helper()
		var tree api.Tree
		who.get("/v1/jobs/" + ref + "/tree").want(200).into(&tree)
		var out []string
		for _, j := range tree.Jobs {
			if len(j.Budget) != 1 || j.State == "" || j.Profile != "default" || (j.Outcome != nil) != (j.Name == "aa") {
				t.Errorf("%+v", j)
			}
			out = append(out, strings.Repeat("-", j.Depth)+j.Name+strings.Repeat("+", j.Children))
		}
		return strings.Join(out, " ")
	}
	host := c.as(alice)
	for ref, want := range map[string]string{"root": "root++ -a+ --aa -b+ --bb", "b": "-b+ --bb", "bb": "--bb", "stranger": "stranger"} {
		if got := outline(host, ref); got != want {
			t.Errorf("%s: %q, want %q", ref, got, want)
		}
	}
	if got := outline(c.asJob(c.jobs["a"]), "a"); got != "-a+ --aa" {
		t.Errorf("to itself a is %q", got)
	}
	host.get("/v1/jobs/nobody/tree").problem(404, job.CodeNotFound)
}

func TestALargeTree(t *testing.T) {
	r := newRig(t)
	top := r.daemon.add(alice, named("top"))
	mid := r.daemon.add(alice, under(top))
	for i := range 100 {
		parent := top
		if i%2 == 0 {
			parent = mid
		}
		r.daemon.add(alice, under(parent))
	}
	var tree api.Tree
	r.as(alice).get("/v1/jobs/top/tree").want(200).into(&tree)
	if len(tree.Jobs) != 102 || tree.Truncated || tree.Jobs[0].Children != 51 || tree.Jobs[1].ID != string(mid.ID) || tree.Jobs[1].Children != 50 {
		t.Fatalf("%d jobs, %+v", len(tree.Jobs), tree.Jobs[0])
	}
	for i, j := range tree.Jobs[2:] {
		if inMid := i < 50; (j.Parent == string(mid.ID)) != inMid {
			t.Fatalf("number %d has parent %s", i, j.Parent)
		}
	}
}

func TestATreeThatIsTooLargeIsCut(t *testing.T) {
	r := newRig(t)
	top := r.daemon.add(alice, named("top"))
	old := r.daemon.add(alice, under(top))
	for range api.MaxTreeJobs {
		r.daemon.add(alice, under(old))
	}
	var tree api.Tree
	r.as(alice).get("/v1/jobs/top/tree").want(200).into(&tree)
	if len(tree.Jobs) != api.MaxTreeJobs || !tree.Truncated || tree.Jobs[0].ID != string(top.ID) {
		t.Fatalf("%d jobs, truncated %v", len(tree.Jobs), tree.Truncated)
	}
	for i := range tree.Jobs[2:] {
		if tree.Jobs[i+1].ID >= tree.Jobs[i+2].ID {
			t.Fatalf("number %d is out of order", i)
		}
	}
}
