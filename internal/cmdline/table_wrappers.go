package cmdline

// wrapperOptions returns the table of a program that runs the command at the end of its arguments.
// Options that do more than that are marked; -S of env splits a text into arguments.
func wrapperOptions(name string) (p program, known bool) {
	options := ""
	switch name {
	case "timeout":
		options = "-f,--foreground -k,--kill-after=TIME -p,--preserve-status -s,--signal=NAME -v,--verbose --help --version"
	case "nice":
		options = "-NUM -n,--adjustment=N --help --version"
	case "nohup", "builtin":
	case "setsid":
		options = "-c,--ctty -f,--fork -w,--wait -V,--version -h,--help"
	case "stdbuf":
		options = "-i,--input=MODE -o,--output=MODE -e,--error=MODE --help --version"
	case "time":
		options = "-p,--portability >-o,--output=FILE !-f,--format=FORMAT !-a,--append !-v,--verbose !-q,--quiet !-h !-l -V,--version --help"
	case "ionice":
		options = "-c,--class=CLASS -n,--classdata=N !-p,--pid=PID !-P,--pgid=PID -t,--ignore !-u,--uid=UID -V,--version -h,--help"
	case "env":
		options = `!-i,--ignore-environment !-0,--null !-u,--unset=NAME !-C,--chdir=FILE !-S,--split-string=TEXT !-P=PATH !-L=USER !-U=USER !--block-signal[=SIGNAL] !--default-signal[=SIGNAL] !--ignore-signal[=SIGNAL]
			!--list-signal-handling !-v,--debug --help --version`
	case "sudo":
		options = `-A,--askpass -b,--background -B,--bell -C,--close-from=N -D,--chdir=FILE -E,--preserve-env[=LIST] -e,--edit -g,--group=NAME -H,--set-home -h,--host=NAME --help -i,--login -K,--remove-timestamp
			-k,--reset-timestamp -l,--list -N,--no-update -n,--non-interactive -P,--preserve-groups -p,--prompt=TEXT -R,--chroot=FILE -r,--role=NAME -S,--stdin -s,--shell -T,--command-timeout=N -t,--type=NAME -U,--other-user=NAME
			-u,--user=NAME -V,--version -v,--validate`
	case "doas":
		options = "-a=STYLE -C=FILE -L -n -s -u=NAME"
	case "exec":
		options = "-c -l -a=NAME"
	case "command":
		return commandOptions(), true
	case "xargs":
		options = `-0,--null !-a,--arg-file=FILE -d,--delimiter=CHAR -E=TEXT !-e,--eof[=TEXT] -I=TEXT !-i,--replace[=TEXT] -L=N !-l,--max-lines[=N] -n,--max-args=N !-o,--open-tty -P,--max-procs=N !-p,--interactive
			--process-slot-var=NAME -r,--no-run-if-empty -s,--max-chars=N --show-limits -t,--verbose -x,--exit --help --version`
	default:
		return program{}, false
	}
	return program{options: options, stopAtOperand: true}, true
}

func commandOptions() program { return program{options: "-p -v -V", stopAtOperand: true} }

// runnersByOption returns the table of a program that is not a wrapper but has options which run other
// programs.
func runnersByOption(name string) (p program, known bool) {
	p.partialTable = true
	switch name {
	case "tar":
		p.options = `!--to-command=X !--checkpoint-action=X !-I,--use-compress-program=X !--rsh-command=X !--rmt-command=X !-F,--info-script=X !--new-volume-script=X -f,--file=X -C,--directory=X -b=X -L=X -N=X -V=X -X=X -T=X
			-K=X -g=X -H=X`
	case "rsync":
		p.options = "!-e,--rsh=X !--rsync-path=X -f=X -B=X -M=X -T=X"
	case "zip":
		p.options, p.singleDash = "!-TT=X !-unzip-command=X", true
	case "go":
		p.options, p.singleDash = "!-exec=X !-toolexec=X !-vettool=X", true
	case "git":
		p.options = "!--upload-pack=X !--receive-pack=X !--exec=X !--exec-path[=X] !--config-env=X !--git-dir=X !--work-tree=X !--ext-diff !--textconv"
	case "fd", "fdfind":
		p.options = "!-x,--exec=X !-X,--exec-batch=X -e=X -E=X -t=X -d=X -c=X -S=X -j=X -o=X"
	case "cargo":
		p.options = "!--config=X"
	case "man":
		p.options = "!-P,--pager=X !-H,--html[=X]"
	case "curl":
		p.options = "!-K,--config=X -H=X -d=X -o=X -u=X -X=X -A=X -b=X -c=X -e=X -F=X -T=X -w=X -x=X -m=X"
	case "wget":
		p.options = "!--use-askpass=X !-e,--execute=X -O=X -o=X -a=X -i=X -P=X -U=X"
	case "less", "vim", "vi", "ed", "emacs":
		p.partialTable = false // refuse any option
	default:
		return program{}, false
	}
	return p, true
}

// lossOptions returns a table with the options that decide whether a command loses work
// irreversibly.
func lossOptions(name string) program {
	p := program{partialTable: true}
	switch name {
	case "rm":
		p.options = "-r,-R,--recursive"
	case "rsync":
		p.options = "--delete,--del,--delete-before,--delete-during,--delete-delay,--delete-after,--delete-excluded,--delete-missing-args"
	case "git reset":
		p.options = "--hard,--merge"
	case "git clean":
		p.options = "-n,--dry-run -e,--exclude=X"
	case "git checkout":
		p.options = "-f,--force --pathspec-from-file=FILE -b,-B,-t,--orphan,--track,--detach"
	case "git switch":
		p.options = "-f,--force,--discard-changes -c,--create=X -C=X"
	case "git restore":
		p.options = "-S,--staged -W,--worktree -s,--source=X"
	case "git push":
		p.options = "-f,--force,--force-with-lease,--mirror,--delete,--prune,-d -o,--push-option=X"
	case "git branch":
		p.options = "-f,--force,-D,-M,-C -u,--set-upstream-to=X"
	case "git tag":
		p.options = "-d,--delete,-f,--force -m,--message=X -F=X -u=X"
	case "git rm":
		p.options = "-f,--force --cached"
	case "git worktree", "git submodule":
		p.options = "-f,--force"
	case "git update-ref":
		p.options = "-d,--stdin -m=X"
	case "git gc":
		p.options = "--prune[=X]"
	}
	return p
}
