// Package job holds the shared words of sandboxd: identifiers, the request as admitted (Spec), the record of a
// job, its states and outcome, the closed lists of statuses, reasons and error codes, and who a caller is.
//
// It decides nothing and does no I/O; every other room may import it and it imports none of them.
package job
