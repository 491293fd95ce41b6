package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"sandboxd/api"
)

// budgetKey is one dimension as --budget names it.
type budgetKey struct {
	name, unit string
	set        func(b *api.Budget, text string) error
}

func budgetKeys() []budgetKey {
	return []budgetKey{
		{"wall", "TIME", into(func(b *api.Budget) **api.Duration { return &b.Wall }, api.ParseDuration)},
		{"cpu", "TIME", into(func(b *api.Budget) **api.Duration { return &b.CPU }, api.ParseDuration)},
		{"egress", "SIZE", into(func(b *api.Budget) **api.Size { return &b.EgressBytes }, api.ParseSize)},
		{"output", "SIZE", into(func(b *api.Budget) **api.Size { return &b.OutputBytes }, api.ParseSize)},
		{"artifacts", "SIZE", into(func(b *api.Budget) **api.Size { return &b.ArtifactBytes }, api.ParseSize)},
		{"input-tokens", "N", into(func(b *api.Budget) **api.Int { return &b.InputTokens }, parseInt)},
		{"output-tokens", "N", into(func(b *api.Budget) **api.Int { return &b.OutputTokens }, parseInt)},
		{"tool-calls", "N", into(func(b *api.Budget) **api.Int { return &b.ToolCalls }, parseInt)},
		{"cost", "USD", into(func(b *api.Budget) **api.Int { return &b.CostMicroUSD }, parseUSD)},
	}
}

func into[T ~int64](field func(*api.Budget) **T, parse func(string) (T, error)) func(*api.Budget, string) error {
	return func(b *api.Budget, text string) error {
		v, err := parse(text)
		if err != nil {
			return err
		}
		if v <= 0 {
			return fmt.Errorf("0 is not an amount; leave it out for a share of what is left")
		}
		*field(b) = &v
		return nil
	}
}

// parseUSD reads dollars with at most six decimals as millionths.
func parseUSD(s string) (api.Int, error) {
	whole, fraction, _ := strings.Cut(s, ".")
	n, err := strconv.ParseUint(whole+(fraction + "000000")[:6], 10, 63)
	if err != nil || whole == "" || len(fraction) > 6 || strings.HasSuffix(s, ".") || strings.ContainsAny(s, "+-_") {
		return 0, fmt.Errorf("%.40q is not an amount of dollars; write 2 or 0.05 (six decimals at most)", s)
	}
	return api.Int(n), nil
}

// setBudget reads --budget and --strict-budget; a task file's amounts stand where no flag names them.
func setBudget(cmd *cli.Command, req *api.JobRequest) error {
	b := api.Budget{}
	if req.Budget != nil {
		b = *req.Budget
	}
	before := b
	seen := map[string]bool{}
	for _, flag := range cmd.StringSlice("budget") {
		for item := range strings.SplitSeq(flag, ",") {
			if err := setBudgetItem(cmd, &b, item, seen); err != nil {
				return err
			}
		}
	}
	b.Strict = b.Strict || cmd.Bool("strict-budget")
	if b != before {
		req.Budget = &b
	}
	return nil
}

func setBudgetItem(cmd *cli.Command, b *api.Budget, item string, seen map[string]bool) error {
	name, text, ok := strings.Cut(item, "=")
	if !ok {
		return usage(cmd, "--budget: %.80q is not KEY=AMOUNT, such as cpu=30s or output=10MiB", item)
	}
	var names []string
	for _, k := range budgetKeys() {
		names = append(names, k.name)
		if k.name != name {
			continue
		}
		if seen[name] {
			return usage(cmd, "--budget: %s is given twice", name)
		}
		seen[name] = true
		if err := k.set(b, text); err != nil {
			return usage(cmd, "--budget: %s: %v", name, err)
		}
		return nil
	}
	return oneOf(cmd, "--budget", name, names...)
}
