// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"fmt"
)

// Exit codes. They are part of the plugin's interface, as is the help that lists them.
const (
	// ExitDone means that the command is done, and that diff, conflicts, takeover, status and doctor have found nothing.
	ExitDone = 0
	// ExitFound means that diff or conflicts have found something, that something blocks a takeover, a handback
	// or the CRDs, that status or doctor have found something wrong, or that the operator has refused what was asked.
	ExitFound = 1
	// ExitFailed means that it could not be done, or not all of it: wrong usage, no access, an answer with an error.
	ExitFailed = 2
	// ExitDeclined means that the user has said no, or that there was no terminal to ask on. Nothing was changed.
	ExitDeclined = 3
	// ExitTimeout means that the change was written and that the operator has not answered in time, or that its answer could not be read.
	ExitTimeout = 4
)

const exitCodesHelp = `Exit codes:
  0  done; diff, conflicts, takeover, status and doctor found nothing, or warnings only
  1  differences, conflicts, obstacles or faults found, or the operator refused the request
  2  not done, or not all of it: wrong usage, no access, an error of the API server
  3  you answered no, or there was no terminal to ask on; nothing was changed
  4  written, but the operator did not answer in time, or its answer could not be read`

// exit is an error that ends the run with a code.
type exit struct {
	code int
	// err is shown to the user; nil when everything has been shown.
	err error
}

// Error implements error.
func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

// Unwrap returns what is shown to the user.
func (e *exit) Unwrap() error { return e.err }

// errFound ends a run that has found, and shown, what it looked for.
var errFound error = &exit{code: ExitFound}

// errNotChecked ends a run that has found no problem, but could not look at everything.
var errNotChecked error = &exit{ExitFailed, errors.New("not everything could be looked at")}

// codeOf returns the exit code of a run and what is left to show the user.
func codeOf(err error) (int, error) {
	if err == nil {
		return ExitDone, nil
	}
	if e, ok := errors.AsType[*exit](err); ok {
		return e.code, e.err
	}
	return ExitFailed, err
}
