// Package delegation runs jobs that start jobs, with the real daemon, the real sbx inside and real containers.
package delegation
