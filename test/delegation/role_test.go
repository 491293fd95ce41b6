package delegation_test

import (
	"reflect"
	"strings"
	"testing"

	"sandboxd/api"
)

// Role and skills of a host user are kept, whatever becomes of the job; a job may name none.
func TestRoleAndSkillsAreTheHosts(t *testing.T) {
	d := daemon(t)
	given := []string{"--role", "réviseur", "--skill", "go", "--skill", "git"}
	for name, flags := range map[string][]string{
		"success": {"--", "true"},
		"error":   {"--", "false"},
		"absent":  {"--", "nosuch"},
		"failed":  {"-w", "/nope", "--", "true"},
		"timeout": {"--timeout", "1s", "--", "sleep", "60"},
	} {
		d.Sbx(append(append([]string{"run", "--image", tiny, "-p", "leaf", "--name", "role-" + name}, given...), flags...)...)
		in := inspect(t, d, "role-"+name)
		if in.Result == nil {
			t.Fatalf("%s: no result", name)
		}
		for where, got := range map[string]*api.Delegation{"record": in.Delegation, "result": in.Result.Delegation} {
			if got == nil || got.Role != "réviseur" || !reflect.DeepEqual(got.Skills, []string{"go", "git"}) || got.Source == "" {
				t.Errorf("%s: %s: %+v", name, where, got)
			}
		}
		if in.Role != "réviseur" || !reflect.DeepEqual(in.Skills, []string{"go", "git"}) {
			t.Errorf("%s: %q %q", name, in.Role, in.Skills)
		}
	}
	id := start(t, d, "top", asking+"ask role -p leaf --role boss; ask skill -p leaf --skill go; ask none -p leaf --name roleless")
	wait(t, d, id, 30e9)
	got := answers(t, d.Must("logs", id).Stdout)
	for _, name := range []string{"role", "skill"} {
		if len(got[name]) != 1 || !strings.HasPrefix(got[name][0], "120|1|") || !strings.Contains(got[name][0], "(forbidden)") || !strings.Contains(got[name][0], "host user") {
			t.Errorf("%s from a job: %q", name, got[name])
		}
	}
	if in := inspect(t, d, "roleless"); in.Delegation != nil && in.Delegation.Role != "" || in.Role != "" {
		t.Errorf("a child without a role: %+v", in.Delegation)
	}
	denied := d.Sbx("run", "--json", "--image", tiny, "-p", "leaf", "--role", "boss", "-m", "1t", "--", "true")
	if denied.Code != 120 {
		t.Errorf("%+v", denied)
	}
}
