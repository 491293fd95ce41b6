// Command images builds sandboxd's own container images without any registry and loads them into the
// engine: tiny (a static busybox, for tests and demos) and base (Debian with git, curl and python3).
//
// An image is one layer and a fixed config, written as an archive by this program, so that the same recipe
// and the same packages give the same image id. The hash of the recipe is kept in the label
// "sandboxd.recipe"; an image whose label matches is not built again unless -force is given, which is how
// newer packages are taken in.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "images: %v\n", err)
		os.Exit(1)
	}
}

// run builds the named images, or all of them when none is named.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	force := flags.Bool("force", false, "build again even where the engine has an image of this recipe")
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "usage: images [-force] [%s]...\n", strings.Join(imageNames, "|"))
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	recipes, err := recipesOf(flags.Args(), thisHost())
	if err != nil {
		return err
	}
	eng, err := newEngine(os.Getenv("DOCKER_HOST"))
	if err != nil {
		return err
	}
	syscall.Umask(0o022) // or the caller's umask would end up in the files of base
	for _, r := range recipes {
		if err := provide(ctx, eng, r, *force, out); err != nil {
			return fmt.Errorf("%s: %w", r.Tag, err)
		}
	}
	return nil
}

// provide makes sure the engine has the image of the recipe: from the cache, or built and loaded.
func provide(ctx context.Context, eng *engine, r recipe, force bool, out io.Writer) error {
	if err := eng.checkArch(ctx, r.Arch); err != nil {
		return err
	}
	had, err := eng.find(ctx, r.Tag)
	if err != nil {
		return err
	}
	if !force && (had.Recipe == r.hash() || had.Recipe == byDockerfile) {
		fmt.Fprintf(out, "images: %s cached, %s\n", r.Tag, had.ID)
		return nil
	}
	begun := time.Now()
	fmt.Fprintf(out, "images: %s building\n", r.Tag)
	now, err := buildAndLoad(ctx, eng, r)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "images: %s built in %.1f s, %d MB, %s\n", r.Tag, time.Since(begun).Seconds(), now.Size/1e6, now.ID)
	if had.ID != "" && had.ID != now.ID {
		fmt.Fprintf(out, "images: the former %s stays in the engine, untagged\n", had.ID)
	}
	return nil
}

// buildAndLoad builds the image in a folder of its own and loads it; it returns what the engine then has.
func buildAndLoad(ctx context.Context, eng *engine, r recipe) (now loaded, err error) {
	dir, err := os.MkdirTemp("", "sandboxd-images-")
	if err != nil {
		return loaded{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	img, err := build(ctx, r, dir)
	if err != nil {
		return loaded{}, err
	}
	defer func() { err = errors.Join(err, img.layer.close()) }()
	if err := eng.load(ctx, img.write); err != nil {
		return loaded{}, err
	}
	now, err = eng.find(ctx, r.Tag)
	if err == nil && now.Recipe != r.hash() {
		err = fmt.Errorf("loaded, but the engine shows label %s=%q, want %q", recipeLabel, now.Recipe, r.hash())
	}
	return now, err
}

// build fills a layer in dir by the recipe. The caller closes the layer.
func build(ctx context.Context, r recipe, dir string) (*image, error) {
	l, err := newLayer(dir)
	if err != nil {
		return nil, err
	}
	err = r.fill(ctx, r, l, dir)
	if err == nil {
		err = addFolders(l, r.Folders)
	}
	var img *image
	if err == nil {
		img, err = newImage(r, l)
	}
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	return img, nil
}
