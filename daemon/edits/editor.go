// Package edits changes configuration files for the user: it changes each value in the file that
// defines it.
//
// A change is in effect when the function returns. A workspace file that the user trusts stays
// trusted, unless other programs have changed it since. The package does not check values; package
// config does when it reads the file again.
//
// The entry point is New.
package edits

import (
	"errors"

	"github.com/seed-dec29ce4/eca/config"
)

// Trust keeps a file trusted over an edit.
type Trust interface {
	// MayRenew reports whether a file stays trusted if eca edits it now.
	MayRenew(file string) bool
	// Renew trusts a file that eca has just edited.
	Renew(file string) error
}

// Editor changes files of the configuration.
type Editor struct {
	config func() *config.Loaded
	reload func() bool
	trust  Trust
}

// New returns an editor for the files of a configuration. reload applies a change.
func New(current func() *config.Loaded, reload func() bool, t Trust) *Editor {
	return &Editor{current, reload, t}
}

// Drop removes the value at a path of keys from every file that has it, beginning with the highest
// layer. A section that becomes empty is removed too.
func (e *Editor) Drop(path ...string) error {
	for last := ""; ; {
		origin, ok := e.config().Origin(path...)
		if !ok || origin.Source == last || origin.Source != e.config().Owner(path...) {
			return nil
		}
		last = origin.Source
		if err := e.Edit(last, config.Delete(path...), config.DeleteEmpty(path[0])); err != nil {
			return err
		}
	}
}

// Edit changes a configuration file and applies the change.
func (e *Editor) Edit(file string, changes ...config.Change) error {
	switch {
	case e.config().PureConfig:
		return errors.New("the configuration comes from the editor alone (pureConfig); no file is in effect")
	case file == "":
		return errors.New("there is no configuration file to change")
	}
	renew := e.trust.MayRenew(file)
	if err := config.EditFile(file, changes...); err != nil {
		return err
	}
	e.reload()
	if renew {
		return e.trust.Renew(file)
	}
	return nil
}
