package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"sandboxd/api"
	"sandboxd/client"
	"sandboxd/client/clienttest"
)

// Submit a job, pass its output on as it comes, and look at how it ended.
func Example() {
	dir, _ := os.MkdirTemp("", "sbx")
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s.sock")
	daemon, err := clienttest.Start(socket) // stands for the real one here
	if err != nil {
		fmt.Println(err)
		return
	}
	defer daemon.Close()

	ctx := context.Background()
	c := client.New(client.Options{Socket: socket})
	defer c.Close()
	job, err := c.Submit(ctx, api.JobRequest{Command: []string{"echo", "hello"}})
	if err != nil {
		fmt.Println("not admitted:", err)
		return
	}
	stream, err := c.Stream(ctx, job.ID, client.StreamOptions{Follow: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stream.Close()
	for {
		r, err := stream.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		if r.Kind == api.KindStdout {
			fmt.Print(string(r.Payload))
		}
	}
	result, err := c.WaitResult(ctx, job.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Status, result.RunExit)
	// Output:
	// hello
	// success 0
}
