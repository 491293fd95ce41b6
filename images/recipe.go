package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	// recipeLabel is the config label that holds the hash of the recipe an image was built by.
	recipeLabel = "sandboxd.recipe"
	// byDockerfile is the label's value in an image built from images/Dockerfile.*: taken as it is.
	byDockerfile = "dockerfile"
	// layerFormat is raised whenever the code of this package writes other bytes for the same recipe and the
	// same files; TestTheBytesOfAnImageAreFixed notices.
	layerFormat = 1
)

// epoch is the time of every file and of the image itself.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// imageNames lists the images in the order they are built.
var imageNames = []string{"tiny", "base"}

// folders are pre-made in every image: a job's root is read-only, so nothing could make them later.
var folders = []folder{
	{"data", 0o755}, {"dev", 0o755}, {"etc", 0o755}, {"home/job", 0o755}, {"mnt", 0o755}, {"out", 0o755},
	{"proc", 0o755}, {"root", 0o700}, {"run", 0o755}, {"sbx/bin", 0o755}, {"sbx/slot", 0o755}, {"sys", 0o755},
	// An old runc gives a tmpfs the mode of the folder it covers.
	{"tmp", 0o1777}, {"var/tmp", 0o1777}, {"workspace", 0o755},
}

type folder struct {
	Name string
	Mode int64
}

// host is what an image takes from the machine that builds it.
type host struct {
	Arch     string // as Go and the engine name it: amd64, arm64
	Distro   string // ID in os-release: debian, ubuntu
	Codename string // VERSION_CODENAME in os-release: bookworm
}

// recipe is all that decides an image's bytes, apart from the packages the archive holds on the day.
type recipe struct {
	host
	Tag        string
	Format     int
	Epoch      int64
	Folders    []folder
	Files      map[string]string // path → content, written as they stand
	Packages   []string
	PathsOut   []string // dpkg does not unpack these
	BelowOut   []string // everything below these folders is left out
	FilesOut   []string // every file below these folders is left out, the folders stay
	PatternOut []string // names left out, as path.Match patterns

	fill func(ctx context.Context, r recipe, l *layer, dir string) error
}

// hash identifies the recipe.
func (r recipe) hash() string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // a struct of strings and numbers
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// recipesOf returns the recipes of the named images, or of all of them.
func recipesOf(names []string, h host) ([]recipe, error) {
	if len(names) == 0 {
		names = imageNames
	}
	var recipes []recipe
	for _, name := range names {
		if !slices.Contains(imageNames, name) {
			return nil, fmt.Errorf("no image is named %q; there are: %s", name, strings.Join(imageNames, ", "))
		}
		r := recipe{host: h, Tag: "sandboxd/" + name + ":latest", Format: layerFormat, Epoch: epoch.Unix(), Folders: folders}
		if name == "tiny" {
			recipes = append(recipes, tinyRecipe(r))
		} else {
			recipes = append(recipes, baseRecipe(r))
		}
	}
	return recipes, nil
}

// thisHost reads the machine's own names. On a system without os-release they stay empty.
func thisHost() host {
	h := host{Arch: runtime.GOARCH}
	f, err := os.Open("/etc/os-release")
	if err != nil {
		return h
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), "=")
		switch value = strings.Trim(value, `"'`); key {
		case "ID":
			h.Distro = value
		case "VERSION_CODENAME":
			h.Codename = value
		}
	}
	return h
}

func addFolders(l *layer, all []folder) error {
	for _, f := range all {
		if err := l.folder(f.Name, f.Mode); err != nil {
			return err
		}
	}
	return nil
}
