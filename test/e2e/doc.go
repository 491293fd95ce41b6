// Package e2e runs the real sbx against the real daemon and real containers: what users see, from the outside.
package e2e
