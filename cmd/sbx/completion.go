package main

import (
	"context"
	"embed"
	"fmt"
	"regexp"
	"time"

	"github.com/urfave/cli/v3"

	"sandboxd/client"
)

// completeEnv is set by the completion scripts alone. Without it the library would take a command's own last
// argument, --generate-shell-completion, for itself.
const completeEnv = "SANDBOXD_COMPLETE"

//go:embed completion
var completionScripts embed.FS

const completionHelp = `
Prints a script that teaches the shell to complete verbs, flags and jobs.

examples:
  source <(sbx completion bash)                            in ~/.bashrc
  source <(sbx completion zsh)                             in ~/.zshrc
  sbx completion fish >~/.config/fish/completions/sbx.fish`

func (a *app) completionVerb() *cli.Command {
	return &cli.Command{
		Name: "completion", Category: "daemon", Usage: "print a completion script for bash, zsh or fish", ArgsUsage: "bash|zsh|fish",
		Description: completionHelp,
		Action: func(_ context.Context, cmd *cli.Command) error {
			if cmd.Args().Len() != 1 {
				return usage(cmd, "name one shell: bash, zsh or fish")
			}
			shell := cmd.Args().First()
			if err := oneOf(cmd, "shell", shell, "bash", "zsh", "fish"); err != nil {
				return err
			}
			script, err := completionScripts.ReadFile("completion/sbx." + shell)
			if err != nil {
				return fmt.Errorf("the script is missing: %w", err)
			}
			_, err = a.stdout.Write(script)
			return err
		},
	}
}

// harmless are the names and ids that are offered to a shell.
var harmless = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)

// completeJobs offers flags after a dash, and otherwise the caller's newest jobs.
func (a *app) completeJobs(ctx context.Context, cmd *cli.Command) {
	args := cmd.Args().Slice()
	if len(args) > 0 && args[len(args)-1] != "" && args[len(args)-1][0] == '-' {
		cli.DefaultCompleteWithFlags(ctx, cmd)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	c := newClient(cmd)
	defer c.Close()
	list, err := c.Jobs(ctx, client.JobFilter{Limit: 50})
	if err != nil {
		return // a completion has nowhere to complain
	}
	for _, j := range list.Jobs {
		for _, word := range []string{j.Name, j.ID} {
			if harmless.MatchString(word) {
				_, _ = fmt.Fprintln(a.stdout, word)
			}
		}
	}
}
