package main

import (
	"os"
	"strings"
	"testing"
)

func TestARecipeHashFollowsEverythingThatShapesTheImage(t *testing.T) {
	seen := map[string]string{testRecipe(t, "base").hash(): "base"}
	for name, change := range map[string]func(*recipe){
		"arch":     func(r *recipe) { r.Arch = "arm64" },
		"codename": func(r *recipe) { r.Codename = "trixie" },
		"packages": func(r *recipe) { r.Packages = r.Packages[1:] },
		"folders":  func(r *recipe) { r.Folders = r.Folders[1:] },
		"left out": func(r *recipe) { r.PatternOut = nil },
		"format":   func(r *recipe) { r.Format++ },
		"files":    func(r *recipe) { r.Files = map[string]string{"etc/x": "y"} },
		"epoch":    func(r *recipe) { r.Epoch++ },
		"tag":      func(r *recipe) { r.Tag = "other" },
	} {
		r := testRecipe(t, "base")
		change(&r)
		if twin, ok := seen[r.hash()]; ok {
			t.Errorf("changing %s gives the hash of %s", name, twin)
		}
		seen[r.hash()] = name
	}
	if again := testRecipe(t, "base").hash(); seen[again] != "base" {
		t.Error("one recipe has two hashes")
	}
}

func TestAnUnknownImageIsRefused(t *testing.T) {
	_, err := recipesOf([]string{"tiny", "huge"}, host{})
	if err == nil || !strings.Contains(err.Error(), `"huge"`) {
		t.Errorf("error %v, want one that names huge", err)
	}
}

func TestBaseLeavesOutWhatIsVolatile(t *testing.T) {
	r := testRecipe(t, "base")
	for name, want := range map[string]bool{
		"dev/null": true, "dev/pts": true, "run/lock": true, "tmp/x": true, "etc/passwd-": true, "etc/machine-id": true,
		"etc/resolv.conf": true, "etc/apt/sources.list": true, "etc/apt/apt.conf.d/99mmdebstrap": true,
		"var/log/apt/history.log": true, "var/cache/ldconfig/aux-cache": true, "var/lib/apt/extended_states": true,
		"var/lib/dpkg/status-old": true, "var/lib/dpkg/lock-frontend": true, "var/cache/debconf/config.dat-old": true,
		"dev": false, "tmp": false, "etc/passwd": false, "etc/ld.so.cache": false, "var/lib/dpkg/status": false,
		"usr/lib/python3.11/__pycache__/ast.cpython-311.pyc": false, "device": false, "home/job": false,
	} {
		if got := r.leftOut(name, false); got != want {
			t.Errorf("leftOut(%s) = %v, want %v", name, got, want)
		}
	}
	if r.leftOut("var/log/apt", true) {
		t.Error("the folder var/log/apt is left out; apt would fail in an image built on this one")
	}
}

func TestTheDockerfilesMatchTheRecipes(t *testing.T) {
	for _, name := range imageNames {
		text, err := os.ReadFile("Dockerfile." + name)
		if err != nil {
			t.Fatal(err)
		}
		r := testRecipe(t, name)
		want := append([]string{recipeLabel + "=" + byDockerfile, `CMD ["sh"]`}, r.Packages...)
		for _, f := range r.Folders {
			if name == "tiny" || strings.Contains("data home/job mnt out sbx/bin sbx/slot workspace", f.Name) {
				want = append(want, f.Name)
			}
		}
		for _, content := range r.Files {
			want = append(want, strings.ReplaceAll(content, "\n", `\n`))
		}
		for _, part := range want {
			if !strings.Contains(string(text), part) {
				t.Errorf("Dockerfile.%s lacks %q", name, part)
			}
		}
	}
}
