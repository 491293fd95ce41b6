package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v3"

	"sandboxd/api"
	"sandboxd/client"
)

const treeHelp = `
Shows a job with all the jobs below it: their state and profile, and of each budget what was used and what is left. What
is granted is reserved for jobs below that have not ended. Without a JOB, all trees that have not ended; inside a job,
its own. With --json, one JSON array of trees.

examples:
  sbx tree
  sbx tree 0191e0c2 --json | jq '.[0].jobs[].budget'`

func (a *app) treeVerb() *cli.Command {
	return &cli.Command{
		Name: "tree", Category: "jobs", Usage: "show jobs with those they started", ArgsUsage: "[flags] [JOB]", Description: treeHelp,
		Flags:         []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "one JSON array"}},
		Action:        a.tree,
		ShellComplete: a.completeJobs,
	}
}

func (a *app) tree(ctx context.Context, cmd *cli.Command) error {
	if cmd.Args().Len() > 1 {
		return usage(cmd, "takes one job; %d were given", cmd.Args().Len())
	}
	tops := cmd.Args().Slice()
	c := newClient(cmd)
	defer c.Close()
	if len(tops) == 0 {
		var err error
		if tops, err = liveTops(ctx, c); err != nil {
			return err
		}
	}
	trees := []*api.Tree{}
	for _, top := range tops {
		t, err := c.Tree(ctx, top)
		switch {
		case err == nil:
			trees = append(trees, t)
		case !client.IsCode(err, client.CodeNotFound) || cmd.Args().Present():
			return err
		}
	}
	if cmd.Bool("json") {
		return a.printJSON(trees)
	}
	return a.treeTable(trees)
}

// liveTops are the highest jobs to be seen of all trees that have not ended, oldest first.
func liveTops(ctx context.Context, c *client.Client) (tops []string, err error) {
	jobs, err := listJobs(ctx, c, client.JobFilter{States: liveStates}, 0)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, j := range jobs {
		seen[j.ID] = true
	}
	for i := len(jobs) - 1; i >= 0; i-- {
		if !seen[jobs[i].Parent] {
			tops = append(tops, jobs[i].ID)
		}
	}
	return tops, nil
}

func (a *app) treeTable(trees []*api.Tree) error {
	lines := asciiLines
	if isTerminal(a.stdout.f) && os.Getenv("TERM") != "dumb" {
		lines = unicodeLines
	}
	var rows [][]cell
	for _, t := range trees {
		for i, branch := range branches(t.Jobs, lines) {
			j := t.Jobs[i]
			state, colour := stateOf(api.Job{State: j.State, Outcome: j.Outcome})
			rows = append(rows, []cell{
				{text: branch + shortID(j.ID)}, {text: cut(orDash(clean(j.Name)), 24)}, {text: clean(state), colour: colour},
				{text: clean(j.Profile)}, {text: orDash(budgetText(j.Budget))},
			})
		}
		if t.Truncated {
			a.note("the tree is cut: it has more than %d jobs", api.MaxTreeJobs)
		}
	}
	return a.table([]string{"JOB", "NAME", "STATE", "PROFILE", "BUDGET"}, rows)
}

// treeLines draw a tree: a job with one after it, the last one, and the same further down.
type treeLines struct{ more, last, pass, none string }

var (
	unicodeLines = treeLines{"├─ ", "└─ ", "│  ", "   "}
	asciiLines   = treeLines{"|- ", "`- ", "|  ", "   "}
)

// branches returns what stands before each job, which come before their children. One whose parent is not there stands
// below the first.
func branches(jobs []api.TreeJob, l treeLines) []string {
	level, children := map[string]int{}, map[string]int{} // children not drawn yet
	parent := func(i int) string {
		if _, known := level[jobs[i].Parent]; known || i == 0 {
			return jobs[i].Parent
		}
		return jobs[0].ID
	}
	for i, j := range jobs {
		level[j.ID] = 0
		if i > 0 {
			children[parent(i)]++
		}
	}
	out := make([]string, len(jobs))
	var open []string // of each level above, what is drawn further down
	for i, j := range jobs {
		if i == 0 {
			continue
		}
		up := parent(i)
		level[j.ID] = level[up] + 1
		children[up]--
		open = open[:level[up]]
		before := strings.Join(open, "")
		if children[up] > 0 {
			out[i], open = before+l.more, append(open, l.pass)
		} else {
			out[i], open = before+l.last, append(open, l.none)
		}
	}
	return out
}

// budgetWords name the dimensions for people, and how their amounts are written.
var budgetWords = map[string]struct {
	name  string
	write func(int64) string
}{
	"wall_ms": {"wall", span}, "cpu_ms": {"cpu", span},
	"egress_bytes": {"egress", size}, "output_bytes": {"output", size}, "artifact_bytes": {"artifacts", size},
	"cost_micro_usd": {"cost", dollars},
}

func dollars(micro int64) string { return fmt.Sprintf("$%d.%06d", micro/1e6, micro%1e6) }

// budgetText tells what was used and is left of each dimension.
func budgetText(lines []api.BudgetLine) string {
	var out []string
	for _, b := range lines {
		word, known := budgetWords[b.Dimension]
		if !known {
			word.name = clean(strings.ReplaceAll(b.Dimension, "_", " "))
			word.write = func(n int64) string { return fmt.Sprint(n) }
		}
		text := word.name + " " + word.write(b.Spent) + " used"
		if b.Granted > 0 {
			text += ", " + word.write(b.Granted) + " granted"
		}
		if b.Left != nil {
			text += ", " + word.write(*b.Left) + " left"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}
