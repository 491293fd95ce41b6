package admission_test

import (
	"context"
	"strings"
	"testing"

	"sandboxd/internal/admission"
	"sandboxd/internal/job"
)

// links are host paths and what they lead to; it keeps who asked.
type links struct {
	*world
	to     map[string]string
	caller job.Caller
}

func (l *links) Check(_ context.Context, c job.Caller, path string) (string, bool, error) {
	l.asked = append(l.asked, "path "+path)
	l.caller = c
	to, ok := l.to[path]
	if !ok {
		return "", false, job.Errorf(job.CodeWorkspace, "", "%q does not exist", path).WithHint("make it")
	}
	return to, !strings.HasSuffix(to, "file"), nil
}

func newLinks() *links {
	return &links{world: newWorld(), to: map[string]string{
		"/resolved/src": "/resolved/src", "/resolved/src/sub": "/resolved/src/sub", "/resolved/src/in": "/resolved/src/sub", "/resolved/src/out": "/etc",
		"/resolved/src/file": "/resolved/src/file", "/resolved/src/twin": "/resolved/src2", "/resolved/data": "/resolved/data", "/resolved/data/up": "/resolved", "/etc": "/etc", "/": "/",
	}}
}

func (l *links) child(parent *admission.Parent, r admission.Request) (admission.Admitted, error) {
	return admission.New(delegating(), l, l, l).Check(context.Background(), job.JobCaller(parent.Job), parent, r)
}

func TestAChildsPathsAreThoseItsParentSees(t *testing.T) {
	for ask, want := range map[string]string{
		"/workspace": "/resolved/src", "/workspace/": "/resolved/src", "/workspace/sub": "/resolved/src/sub", "/workspace/x/../sub//": "/resolved/src/sub",
		"/workspace/in": "/resolved/src/sub", "/mnt/../workspace": "/resolved/src",
	} {
		l := newLinks()
		a, err := l.child(newParent(t), helping(workspace(ask, "ro")))
		if err != nil || a.Spec.Workspace.Path != want || a.Envelope.Workspace.Path != want || a.Spec.Workdir != "/workspace" {
			t.Errorf("%s: %+v, %v", ask, a.Spec.Workspace, err)
		}
		if l.caller.UID != 1000 || l.caller.GID != 1000 || len(l.caller.Groups) != 2 || l.caller.Admin {
			t.Errorf("looked at as %+v", l.caller)
		}
	}
	a, err := newLinks().child(newParent(t), helping(mounts(job.Mount{Source: "/mnt/data", Name: "d"})))
	if err != nil || len(a.Spec.Mounts) != 1 || a.Spec.Mounts[0] != (job.Mount{Source: "/resolved/data", Name: "d"}) {
		t.Errorf("%+v, %v", a.Spec.Mounts, err)
	}
}

func TestAChildsPathsDoNotLeadOut(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*admission.Request)
		code  job.Code
		field string
		says  string
	}{
		"up and away":                {workspace("/workspace/../etc", ""), job.CodeWorkspace, "workspace", "allowed is: /workspace, /mnt/data"},
		"the root":                   {workspace("/", ""), job.CodeWorkspace, "workspace", "allowed is: /workspace, /mnt/data"},
		"a host path":                {workspace("/resolved/src", ""), job.CodeWorkspace, "workspace", "allowed is: /workspace"},
		"a name that begins so":      {workspace("/workspace2", ""), job.CodeWorkspace, "workspace", "allowed is: /workspace"},
		"all mounts":                 {workspace("/mnt", ""), job.CodeWorkspace, "workspace", "allowed is: /workspace"},
		"relative":                   {workspace("workspace", ""), job.CodeInvalid, "workspace", "absolute path inside the container"},
		"empty":                      {workspace("", ""), job.CodeInvalid, "workspace", "absolute path inside the container"},
		"NUL":                        {workspace("/workspace/\x00", ""), job.CodeInvalid, "workspace", "absolute path inside the container"},
		"a link out":                 {workspace("/workspace/out", ""), job.CodeNotSubset, "workspace.path", "asked /etc, allowed is /resolved/src"},
		"a link to a twin":           {workspace("/workspace/twin", ""), job.CodeNotSubset, "workspace.path", "asked /resolved/src2"},
		"a file":                     {workspace("/workspace/file", ""), job.CodeWorkspace, "workspace", "not a directory"},
		"missing":                    {workspace("/workspace/none", ""), job.CodeWorkspace, "workspace", "does not exist"},
		"no such mount":              {mounts(job.Mount{Source: "/mnt/nope", Name: "x"}), job.CodeWorkspace, "mounts.x", "allowed is: /workspace, /mnt/data"},
		"a mount that begins so":     {mounts(job.Mount{Source: "/mnt/database", Name: "x"}), job.CodeWorkspace, "mounts.x", "allowed is: /workspace, /mnt/data"},
		"a mount's neighbour":        {mounts(job.Mount{Source: "/mnt/data/../../etc", Name: "x"}), job.CodeWorkspace, "mounts.x", "allowed is"},
		"a link up out of a mount":   {mounts(job.Mount{Source: "/mnt/data/up", Name: "x"}), job.CodeNotSubset, "mounts", "asked /resolved:x"},
		"the root as a mount":        {mounts(job.Mount{Source: "/", Name: "x"}), job.CodeWorkspace, "mounts.x", "allowed is"},
		"what is missing in a mount": {mounts(job.Mount{Source: "/mnt/data/none", Name: "x"}), job.CodeWorkspace, "mounts.x", "does not exist"},
	} {
		a, err := newLinks().child(newParent(t), helping(c.spoil))
		e, ok := err.(*job.Error)
		if !ok || e.Code != c.code || e.Field != c.field || !strings.Contains(e.Message, c.says) || a.Frozen != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAChildOfAJobWithoutPathsNamesNone(t *testing.T) {
	parent := newParent(t, func(r *admission.Request) { r.Workspace, r.Mounts = nil, nil })
	_, err := newLinks().child(parent, helping(workspace("/workspace", "")))
	if job.CodeOf(err) != job.CodeWorkspace || !strings.Contains(err.Error(), "allowed is: none") {
		t.Error(err)
	}
	a, err := newLinks().child(parent, helping())
	if err != nil || a.Spec.Workspace != nil || a.Spec.Mounts != nil || a.Spec.Workdir != "/home/job" {
		t.Errorf("%+v, %v", a.Spec, err)
	}
}
