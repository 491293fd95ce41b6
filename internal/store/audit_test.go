package store_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"
)

// invariants are queries that must return no row, whatever happened to the store.
var invariants = map[string]string{
	"SQLite's own check":            `SELECT * FROM pragma_integrity_check WHERE integrity_check <> 'ok'`,
	"references":                    `SELECT * FROM pragma_foreign_key_check`,
	"queue counters":                `SELECT node, owner_uid FROM queues q WHERE queued <> (SELECT count(*) FROM jobs j WHERE j.state = 'queued' AND j.node = q.node AND q.owner_uid IN (-1, j.owner_uid))`,
	"queue bytes":                   `SELECT node, owner_uid FROM queues q WHERE bytes <> (SELECT coalesce(sum(j.bytes), 0) FROM jobs j WHERE j.state = 'queued' AND j.node = q.node AND q.owner_uid IN (-1, j.owner_uid))`,
	"queued jobs are counted":       `SELECT id FROM jobs j WHERE state = 'queued' AND NOT EXISTS (SELECT 1 FROM queues q WHERE q.node = j.node AND q.owner_uid = j.owner_uid)`,
	"tree counters":                 `SELECT root FROM trees t WHERE jobs_ever <> (SELECT count(*) FROM jobs WHERE root = t.root) OR jobs_live <> (SELECT count(*) FROM jobs WHERE root = t.root AND state <> 'done')`,
	"ended trees":                   `SELECT root FROM trees WHERE (ended > 0) <> (jobs_live = 0)`,
	"one end a job":                 `SELECT job FROM events WHERE type = 'done' GROUP BY job HAVING count(*) <> 1`,
	"an end is told":                `SELECT id FROM jobs WHERE state = 'done' AND id NOT IN (SELECT job FROM events WHERE type = 'done') AND (SELECT min(seq) FROM events e WHERE e.owner = jobs.owner) = 1`,
	"an outcome exactly if done":    `SELECT id FROM jobs WHERE (state = 'done') <> (outcome <> '')`,
	"event numbers of an owner":     `SELECT owner FROM events GROUP BY owner HAVING max(seq) - min(seq) + 1 <> count(*)`,
	"event counters":                `SELECT owner FROM event_counters c WHERE owner <> '*' AND seq < (SELECT max(seq) FROM events e WHERE e.owner = c.owner)`,
	"a result exactly if done":      `SELECT id FROM jobs WHERE (state = 'done') <> (id IN (SELECT job FROM results))`,
	"a spec for every job":          `SELECT id FROM jobs WHERE id NOT IN (SELECT job FROM specs)`,
	"no cancel in the queue":        `SELECT id FROM jobs WHERE state = 'queued' AND cancel_reason <> ''`,
	"children end first":            `SELECT c.id FROM jobs c JOIN jobs p ON p.id = c.parent WHERE p.state = 'done' AND c.state <> 'done'`,
	"parents have started":          `SELECT c.id FROM jobs c JOIN jobs p ON p.id = c.parent WHERE p.state IN ('queued', 'starting')`,
	"a budget as the parent has":    `SELECT c.id FROM jobs c WHERE c.parent <> '' AND (c.id IN (SELECT job FROM budgets)) <> (c.parent IN (SELECT job FROM budgets))`,
	"pots are of budgets":           `SELECT job FROM pots WHERE job NOT IN (SELECT job FROM budgets)`,
	"amounts of pots":               `SELECT job FROM pots WHERE spent < 0 OR granted < 0 OR held < 0 OR bound <= 0 OR held > coalesce(bound, 0) OR typeof(spent) <> 'integer' OR typeof(granted) <> 'integer'`,
	"grants are held by live":       `SELECT job, dim FROM pots p WHERE granted <> (` + heldBelow + `)`,
	"the live spent what is below":  `SELECT job, dim FROM pots p WHERE job IN (SELECT id FROM jobs WHERE state <> 'done') AND spent <> (` + spentBelow + `)`,
	"the ended spent that at least": `SELECT job, dim FROM pots p WHERE dim <> 'wall_ms' AND spent < (` + spentBelow + `)`,
	"denials told":                  `SELECT root FROM trees t WHERE denied_told > min(denied, 1000)`,
}

// What the children of the job of the outer pot p hold of it while they live, and what they have spent at their end.
// (Of sums that saturate the tests make none.)
const (
	below      = ` FROM jobs j JOIN budgets b ON b.job = j.id AND b.inherit = 'share' JOIN pots c ON c.job = j.id AND c.dim = p.dim WHERE j.parent = p.job AND j.parent <> '' AND `
	heldBelow  = `SELECT coalesce(sum(c.held), 0)` + below + `j.state <> 'done'`
	spentBelow = `SELECT coalesce(sum(c.spent), 0)` + below + `j.state = 'done' AND c.dim <> 'wall_ms'`
)

// audit checks a closed store's file with SQL of its own.
func audit(t testing.TB, dir string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for name, query := range invariants {
		rows, err := db.Query(query)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if rows.Next() {
			t.Errorf("broken: %s", name)
		}
		if err := rows.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		rows.Close()
	}
}
