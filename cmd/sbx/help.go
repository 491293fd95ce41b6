package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v3"
)

// The help is made here from the commands and handed to the library as finished text, so that it stays short.

func rootHelp(root *cli.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "sbx: %s.\n\nusage: sbx VERB [flags] …\n", root.Usage)
	for _, category := range []string{"jobs", "daemon"} {
		fmt.Fprintf(&b, "\n%s:\n", category)
		for _, c := range root.Commands {
			if c.Category == category {
				fmt.Fprintf(&b, "  %-11s %s\n", c.Name, c.Usage)
			}
		}
	}
	b.WriteString(`
examples:
  sbx run echo hello                             run a command, see its output, get its exit code
  sbx run --workspace . -w /workspace make -n    with this folder, read-only
  id=$(sbx run -d sleep 60); sbx logs -f $id     in the background

'sbx VERB --help' tells all about a verb. A job is named by its id, the beginning of its id, or its name.
`)
	writeFlags(&b, root.Flags)
	return b.String()
}

func verbHelp(parent string, cmd *cli.Command) string {
	var b strings.Builder
	name := cmd.Name
	if parent != "sbx" {
		name = parent + " " + name
	}
	fmt.Fprintf(&b, "sbx %s: %s\n\nusage: sbx %s %s\n", name, cmd.Usage, name, cmd.ArgsUsage)
	if cmd.Description != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(cmd.Description))
	}
	for _, sub := range cmd.Commands {
		fmt.Fprintf(&b, "  %-11s %s\n", sub.Name, sub.Usage)
	}
	writeFlags(&b, cmd.Flags)
	return b.String()
}

// writeFlags lists flags, those of one category together, in the order they were declared.
func writeFlags(b *strings.Builder, flags []cli.Flag) {
	last := "-"
	for _, f := range flags {
		category := ""
		if c, ok := f.(cli.CategorizableFlag); ok {
			category = c.GetCategory()
		}
		if category != last {
			last = category
			if category == "" {
				category = "flags"
			}
			fmt.Fprintf(b, "\n%s:\n", category)
		}
		names, text := flagLine(f)
		if utf8.RuneCountInString(names) > 25 {
			fmt.Fprintf(b, "  %s\n  %-25s  %s\n", names, "", text)
			continue
		}
		fmt.Fprintf(b, "  %-25s  %s\n", names, text)
	}
}

// flagLine writes a flag's names, shortest first, with the placeholder that its usage gives between backquotes.
func flagLine(f cli.Flag) (names, text string) {
	if d, ok := f.(cli.DocGenerationFlag); ok {
		text = d.GetUsage()
	}
	placeholder := ""
	if before, rest, ok := strings.Cut(text, "`"); ok {
		if word, after, ok := strings.Cut(rest, "`"); ok {
			placeholder, text = " "+word, before+word+after
		}
	}
	var short, long []string
	for _, n := range f.Names() {
		if len(n) == 1 {
			short = append(short, "-"+n)
		} else {
			long = append(long, "--"+n)
		}
	}
	if len(short) == 0 {
		return "    " + strings.Join(long, ", ") + placeholder, text
	}
	return strings.Join(append(short, long...), ", ") + placeholder, text
}
