package client_test

import (
	"testing"

	"sandboxd/api"
	"sandboxd/client"
	"sandboxd/client/clienttest"
)

func TestTreeReturnsDescendants(t *testing.T) {
	_, c := pair(t)
	for name, parent := range map[string]string{"top": "", "other": ""} {
		labels := map[string]string{"under": parent, "cpu": "30 of 100"}
		if _, err := c.Submit(within(t), api.JobRequest{Command: []string{"hang"}, Name: name, Labels: labels}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Submit(within(t), api.JobRequest{Command: []string{"hang"}, Name: "below", Labels: map[string]string{"under": "top"}}); err != nil {
		t.Fatal(err)
	}
	tree, err := c.Tree(within(t), "top")
	if err != nil || len(tree.Jobs) != 2 || tree.Jobs[1].Name != "below" || tree.Jobs[1].Parent != tree.Jobs[0].ID || *tree.Jobs[0].Budget[0].Left != 70 {
		t.Errorf("%+v, %v", tree, err)
	}
	if _, err := c.Tree(within(t), "nobody"); !client.IsCode(err, client.CodeNotFound) {
		t.Errorf("of nobody: %v", err)
	}
}

func TestFreezeAndThaw(t *testing.T) {
	d, c := pair(t)
	all := api.FreezeRequest{Scope: api.FreezeAll}
	if list, err := c.Freeze(within(t), all); err != nil || len(list) != 1 || list[0].Scope != "all" {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := c.Frozen(within(t)); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := c.Thaw(within(t), all); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	d.Set(func(f *clienttest.Faults) { f.NoFreezing = true })
	if _, err := c.Freeze(within(t), all); !client.IsCode(err, "forbidden") {
		t.Errorf("%v", err)
	}
}
