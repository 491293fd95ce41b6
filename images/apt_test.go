package main

import (
	"slices"
	"testing"
)

func TestSourcesAreTheDistributionsOwn(t *testing.T) {
	for _, c := range []struct {
		name, targets string
		host          host
		want          []string
	}{
		{
			"Debian, a third party and backports beside it",
			"http://mirror/debian/|bookworm|main|bookworm|Debian\n" +
				"http://mirror/debian/|bookworm|main|bookworm|Debian\n" +
				"http://mirror/debian/|bookworm|contrib|bookworm|Debian\n" +
				"http://mirror/debian/|bookworm-updates|main|bookworm-updates|Debian\n" +
				"http://mirror/debian/|bookworm-backports|main|bookworm-backports|Debian Backports\n" +
				"http://mirror/debian-security/|bookworm-security|main|bookworm-security|Debian\n" +
				"http://vendor/|bookworm|main|bookworm|Vendor\n",
			host{Distro: "debian", Codename: "bookworm"},
			[]string{
				"deb http://mirror/debian/ bookworm main", "deb http://mirror/debian/ bookworm-updates main",
				"deb http://mirror/debian-security/ bookworm-security main",
			},
		},
		{
			"Debian by the suite's name",
			"http://mirror/|stable|main|bookworm|Debian\nhttp://mirror/|testing|main|trixie|Debian\n",
			host{Distro: "debian", Codename: "bookworm"},
			[]string{"deb http://mirror/ stable main"},
		},
		{
			"Ubuntu",
			"http://mirror/|noble|universe|noble|Ubuntu\nhttp://mirror/|noble-updates|main|noble|Ubuntu\nhttp://mirror/|noble-proposed|main|noble|Ubuntu\n",
			host{Distro: "ubuntu", Codename: "noble"},
			[]string{"deb http://mirror/ noble universe", "deb http://mirror/ noble-updates main"},
		},
		{"lists never fetched", "http://mirror/|bookworm|main|$(CODENAME)|$(ORIGIN)\n", host{Distro: "debian", Codename: "bookworm"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := sourceLines(c.targets, c.host); !slices.Equal(got, c.want) {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestOnlyTheWaysToTheArchiveAreTakenFromApt(t *testing.T) {
	dump := "APT::Architecture \"amd64\";\nAcquire::http::Proxy \"http://proxy:3128\";\nAcquire::Languages:: \"none\";\n" +
		"Acquire::Check-Valid-Until \"false\";\nAcquire::AllowInsecureRepositories \"1\";\n"
	want := "Acquire::http::Proxy \"http://proxy:3128\";\nAcquire::Check-Valid-Until \"false\";\n"
	if got := acquireLines(dump); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
