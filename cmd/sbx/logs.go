package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v3"

	"sandboxd/api"
	"sandboxd/client"
)

const logsHelp = `
Prints what a job has written, its stdout to stdout and its stderr to stderr, byte by byte. The exit code says whether
that worked, not how the job ended; 'sbx wait' tells that. --from counts bytes over both streams.
With --json, one JSON object a line: offset, time, stream, and text (or base64 in data, where it is not UTF-8).

examples:
  sbx logs -f 0191e0c2
  sbx logs --stream stderr --timestamps build`

func (a *app) logsVerb() *cli.Command {
	return &cli.Command{
		Name: "logs", Category: "jobs", Usage: "print a job's output", ArgsUsage: "[flags] JOB", Description: logsHelp,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on until the output is complete"},
			&cli.StringFlag{Name: "from", Usage: "begin at byte `N`"},
			&cli.StringFlag{Name: "stream", Usage: "only `stdout` or stderr"},
			&cli.BoolFlag{Name: "timestamps", Aliases: []string{"t"}, Usage: "put the time before every line"},
			&cli.BoolFlag{Name: "json", Usage: "one JSON object a line"},
		},
		Action:        a.logs,
		ShellComplete: a.completeJobs,
	}
}

func (a *app) logs(ctx context.Context, cmd *cli.Command) error {
	jobs, err := refs(cmd, 1)
	if err != nil {
		return err
	}
	o := client.StreamOptions{Follow: cmd.Bool("follow"), Only: cmd.String("stream")}
	if cmd.IsSet("from") {
		if o.From, err = strconv.ParseUint(cmd.String("from"), 10, 63); err != nil {
			return usage(cmd, "--from: %.40q is not a number of bytes", cmd.String("from"))
		}
	}
	if cmd.IsSet("stream") {
		if err := oneOf(cmd, "--stream", o.Only, "stdout", "stderr"); err != nil {
			return err
		}
	}
	if cmd.Bool("json") && cmd.Bool("timestamps") {
		return usage(cmd, "--json carries the times already; leave out --timestamps")
	}
	c := newClient(cmd)
	defer c.Close()
	stream, err := c.Stream(ctx, jobs[0], o)
	if err != nil {
		return err
	}
	defer stream.Close()
	return a.printStream(stream, cmd.Bool("json"), cmd.Bool("timestamps"))
}

func (a *app) printStream(stream *client.Stream, asJSON, times bool) error {
	p := &printer{stdout: a.stdout, stderr: a.stderr, notes: a}
	if times {
		p.timestamps()
	}
	for {
		r, err := stream.Next()
		switch {
		case errors.Is(err, io.EOF):
			return p.finish()
		case err != nil:
			_ = p.finish() // the first error counts
			return err
		case asJSON:
			err = a.printLine(recordOf(r))
		default:
			err = p.record(r)
		}
		if err != nil {
			return fmt.Errorf("writing the output: %w", err)
		}
	}
}

// jsonRecord is one line of logs --json.
type jsonRecord struct {
	Offset  uint64  `json:"offset"`
	Time    string  `json:"time"`
	Stream  string  `json:"stream,omitempty"`
	Text    *string `json:"text,omitempty"`
	Data    []byte  `json:"data,omitempty"` // base64
	LeftOut uint64  `json:"left_out,omitempty"`
}

func recordOf(r api.Record) jsonRecord {
	j := jsonRecord{Offset: r.Offset, Time: timeText(r.Time), LeftOut: client.GapSize(r)}
	switch r.Kind {
	case api.KindStdout:
		j.Stream = "stdout"
	case api.KindStderr:
		j.Stream = "stderr"
	default:
		return j
	}
	if utf8.Valid(r.Payload) {
		j.Text = ptr(string(r.Payload))
	} else {
		j.Data = r.Payload
	}
	return j
}

func timeText(nanos int64) string {
	return time.Unix(0, nanos).UTC().Format("2006-01-02T15:04:05.000000Z")
}
