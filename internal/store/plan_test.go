package store_test

import (
	"database/sql"
	"strings"
	"testing"

	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// TestListingsFollowAnIndex keeps the cost of a listing that of its answer, not of the number of jobs kept.
func TestListingsFollowAnIndex(t *testing.T) {
	dir, path := closedStore(t, 1)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	own, all, inside := store.Viewer{Principal: "uid:1"}, store.Viewer{All: true}, store.Viewer{Job: "j"}
	open := []job.State{job.Queued, job.Running}
	labels := map[string]string{"a": "b", "c": "d"}
	for name, test := range map[string]struct {
		v     store.Viewer
		f     store.Filter
		index string
		sorts bool
	}{
		"own":                   {own, store.Filter{}, "jobs_owner (owner=?)", false},
		"own before":            {own, store.Filter{Before: "x"}, "jobs_owner (owner=? AND id<?)", false},
		"own open":              {own, store.Filter{States: open}, "jobs_open (owner=?)", false},
		"own done":              {own, store.Filter{States: []job.State{job.Done}}, "jobs_owner (owner=?)", false},
		"all":                   {all, store.Filter{}, "sqlite_autoindex_jobs_1", false},
		"all before":            {all, store.Filter{Before: "x"}, "sqlite_autoindex_jobs_1 (id<?)", false},
		"all open":              {all, store.Filter{States: open}, "jobs_open", true}, // of the open ones only
		"own labels":            {own, store.Filter{Labels: labels}, "l USING PRIMARY KEY (key=? AND value=?)", false},
		"all labels open":       {all, store.Filter{Labels: labels, States: open, Before: "x"}, "l USING PRIMARY KEY (key=? AND value=? AND job<?)", false},
		"own name":              {own, store.Filter{Name: "n"}, "jobs_name (name=?)", false},
		"own name open":         {own, store.Filter{Name: "n", States: open}, "jobs_name (name=?)", false},
		"own root":              {own, store.Filter{Root: "r"}, "jobs_root (root=?)", false},
		"own root open":         {own, store.Filter{Root: "r", States: open}, "jobs_root (root=?)", false},
		"own parent, root, all": {own, store.Filter{Parent: "p", Root: "r", Name: "n", States: open}, "jobs_parent (parent=?)", false},
		"a job's":               {inside, store.Filter{}, "jobs_parent (parent=?)", true}, // of its descendants only
		"a job's of all kinds":  {inside, store.Filter{Root: "r", Name: "n", Labels: labels, States: open, Before: "x"}, "jobs_parent (parent=?)", true},
	} {
		t.Run(name, func(t *testing.T) {
			text, args := store.ListText(test.v, test.f)
			plan := explain(t, db, text, args...)
			if !strings.Contains(plan, test.index) || strings.Contains(plan, "TEMP B-TREE") != test.sorts {
				t.Errorf("%s\n%s", text, plan)
			}
		})
	}
	if plan := explain(t, db, store.JobEventsText, "j", 5, 10); !strings.Contains(plan, "events_tree (root=? AND tree_seq>?)") || strings.Contains(plan, "TEMP B-TREE") {
		t.Errorf("events of a job: %s", plan)
	}
	if plan := explain(t, db, store.QueuedText, "n"); !strings.Contains(plan, "COVERING INDEX jobs_open") {
		t.Errorf("the queue of %s: %s", dir, plan)
	}
}

func explain(t *testing.T, db *sql.DB, text string, args ...any) string {
	t.Helper()
	rows, err := db.Query("EXPLAIN QUERY PLAN "+text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, detail)
	}
	return strings.Join(lines, "\n")
}

// TestTreesFollowAnIndex keeps the cost of a decision that of the tree, not of the number of jobs kept.
func TestTreesFollowAnIndex(t *testing.T) {
	_, path := closedStore(t, 1)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	descendants, args := store.DescendantsText("j")
	for name, test := range map[string]struct {
		text  string
		args  []any
		index string
	}{
		"live children": {store.LiveChildrenText, []any{"j"}, "jobs_parent (parent=?)"},
		"the line up":   {store.EndingText, []any{"j"}, "SEARCH j USING INDEX sqlite_autoindex_jobs_1 (id=?)"},
		"pots":          {store.PotsText, []any{"j"}, "SEARCH p USING PRIMARY KEY (job=?)"},
		"descendants":   {descendants, args, "jobs_parent (parent=?)"},
	} {
		if plan := explain(t, db, test.text, test.args...); !strings.Contains(plan, test.index) || strings.Contains(plan, "SCAN j") || strings.Contains(plan, "SCAN p") {
			t.Errorf("%s:\n%s", name, plan)
		}
	}
}
