// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// newBuiltins are the builtins that bash 3.2 lacks.
var newBuiltins = map[string]string{
	"mapfile":   "bash 4.0 or newer; use while IFS= read -r line; do a+=(\"${line}\"); done < <(...)",
	"readarray": "bash 4.0 or newer; use while IFS= read -r line; do a+=(\"${line}\"); done < <(...)",
	"compopt":   "bash 4.0 or newer",
}

// newShellOptions are those of shopt that bash 3.2 lacks.
var newShellOptions = []string{
	"assoc_expand_once", "autocd", "checkjobs", "compat32", "complete_fullquote", "direxpand", "dirspell", "globasciiranges",
	"globskipdots", "globstar", "inherit_errexit", "lastpipe", "localvar_inherit", "localvar_unset", "noexpand_translation",
	"patsub_replacement", "progcomp_alias", "varredir_close",
}

// A utility is a program whose options differ between GNU's version and that of macOS.
type utility struct {
	// long are the long options that both have. POSIX knows none.
	long []string
	// short are GNU's own options of one letter, or those that mean something else elsewhere.
	short string
	// words are arguments that only GNU's knows.
	words []string
	// arguments are the options of one letter that have an argument, which may be in the same word.
	arguments string
}

var utilities = map[string]utility{
	"awk": {}, "basename": {}, "cat": {short: "AET"}, "chmod": {}, "cmp": {}, "cut": {arguments: "dfcb"}, "dirname": {short: "z"},
	"comm": {}, "env": {arguments: "u"}, "expr": {}, "id": {}, "join": {}, "kill": {}, "mkdir": {arguments: "m"}, "rm": {},
	"rmdir": {}, "tee": {short: "p"}, "tr": {}, "uname": {short: "io"}, "uniq": {short: "zDw"}, "wc": {short: "L"}, "od": {},
	"cp":       {short: "tTuxZ"},
	"date":     {short: "dIs", arguments: "f"},
	"diff":     {arguments: "UCL"},
	"du":       {short: "b"},
	"find":     {words: []string{"-printf", "-fprintf", "-regextype", "-executable", "-readable", "-writable", "-daystart"}},
	"grep":     {short: "PzTZ", arguments: "efmABC"},
	"head":     {short: "z", arguments: "nc"},
	"ln":       {short: "rtT"},
	"ls":       {short: "vXQNZ"},
	"mktemp":   {short: "p"},
	"mv":       {short: "tTu"},
	"paste":    {short: "z", arguments: "d"},
	"ps":       {},
	"readlink": {short: "femsvz"},
	"sed":      {short: "rszi", arguments: "ef"},
	"sort":     {short: "hRVz", arguments: "ktoT"},
	"stat":     {short: "c"},
	"tail":     {short: "z", arguments: "nc"},
	"tar":      {long: []string{"--null", "--no-recursion"}, short: "gi", arguments: "CTfb"},
	"touch":    {short: "d"},
	"xargs":    {short: "rda", arguments: "nIPLs"},
}

// missing are programs that macOS lacks; one may be tried where another stands in.
var missing = []string{
	"base32", "chcon", "flock", "free", "getent", "lsb_release", "md5sum", "nproc", "numfmt", "pidof", "realpath", "runuser",
	"setsid", "sha1sum", "sha256sum", "sha512sum", "shuf", "tac", "timeout", "wget",
}

// sedExtension matches what GNU's sed and grep take in a regular expression, beyond POSIX.
var sedExtension = regexp.MustCompile(`(?:^|[^\\])(?:\\\\)*(\\[sSwWbB<>t+?|` + "`" + `])`)

func commandName(call *syntax.CallExpr) string {
	if len(call.Args) == 0 {
		return ""
	}
	return call.Args[0].Lit()
}

// fallbacks returns the calls whose failure another command answers: what is left of ||.
func fallbacks(file *syntax.File) map[*syntax.CallExpr]bool {
	found := map[*syntax.CallExpr]bool{}
	syntax.Walk(file, func(node syntax.Node) bool {
		if list, ok := node.(*syntax.BinaryCmd); ok && list.Op == syntax.OrStmt {
			if call, ok := list.X.Cmd.(*syntax.CallExpr); ok {
				found[call] = true
			}
		}
		return true
	})
	return found
}

func (c *checker) call(node *syntax.CallExpr) {
	name := commandName(node)
	if name == "" {
		return
	}
	args := node.Args[1:]
	// These run another program: what comes after its name is for that one.
	if name == "exec" || name == "command" || name == "xargs" || name == "env" {
		if i := wrapped(args, utilities[name].arguments); i < len(args) {
			c.utility(node, args[i].Lit(), args[i+1:])
			args = args[:i]
		}
	}
	if message := newBuiltins[name]; message != "" {
		c.report(node, "%s: %s", name, message)
	}
	switch name {
	case "shopt":
		for _, arg := range args {
			if slices.Contains(newShellOptions, arg.Lit()) {
				c.report(arg, "shopt %s: bash 4.0 or newer", arg.Lit())
			}
		}
	case "wait":
		for _, arg := range args {
			if option := arg.Lit(); option == "-n" || option == "-f" || option == "-p" {
				c.report(node, "wait %s: bash 4.3 or newer; wait for each process by its id", option)
			}
		}
	case "read":
		c.read(args)
	case "printf":
		c.printf(args)
	case "test", "[":
		for _, arg := range args {
			if arg.Lit() == "-v" || arg.Lit() == "-R" {
				c.report(arg, "%s %s: bash 4.2 or newer; use [[ -n \"${name+set}\" ]]", name, arg.Lit())
			}
		}
	case "unset":
		for _, arg := range args {
			if strings.Contains(text(arg), "[-") {
				c.report(arg, "a negative array index: bash 4.3 or newer")
			}
		}
	default:
		c.utility(node, name, args)
	}
}

// wrapped returns the index of the program that the arguments of exec and its kin name, after their own options.
func wrapped(args []*syntax.Word, withArgument string) int {
	for i := 0; i < len(args); i++ {
		word := text(args[i])
		switch {
		case strings.HasPrefix(word, "-"):
			if len(word) == 2 && strings.Contains(withArgument, word[1:]) {
				i++
			}
		case strings.Contains(word, "="):
		default:
			return i
		}
	}
	return len(args)
}

func (c *checker) read(args []*syntax.Word) {
	for i, arg := range args {
		option := arg.Lit()
		if !strings.HasPrefix(option, "-") {
			continue
		}
		if strings.ContainsAny(option, "Ni") {
			c.report(arg, "read %s: bash 4.0 or newer", option)
		}
		if strings.HasSuffix(option, "t") && i+1 < len(args) && strings.Contains(args[i+1].Lit(), ".") {
			c.report(arg, "read -t with a fraction: bash 4.0 or newer")
		}
	}
}

func (c *checker) printf(args []*syntax.Word) {
	if len(args) > 1 && args[0].Lit() == "-v" {
		if strings.Contains(text(args[1]), "[") {
			c.report(args[1], "printf -v with an array's element: bash 4.1 or newer; use a[i]=\"$(printf ...)\"")
		}
		args = args[2:]
	}
	if len(args) == 0 {
		return
	}
	format := text(args[0])
	if strings.Contains(format, "%(") {
		c.report(args[0], "printf %%(...)T: bash 4.2 or newer; use date")
	}
	if unicodeEscape.MatchString(format) {
		c.report(args[0], "%s...: bash 4.2 or newer; write the character itself", unicodeEscape.FindString(format))
	}
}

// utility checks the call of a program that is not bash's own.
func (c *checker) utility(call *syntax.CallExpr, name string, args []*syntax.Word) {
	if c.exempt[call.Pos().Line()] {
		return
	}
	if slices.Contains(missing, name) && !c.fallbacks[call] && commandName(call) != "command" {
		c.report(call, "macOS has no %s, and nothing stands in for it (||)", name)
	}
	known, ok := utilities[name]
	if !ok {
		return
	}
	options := true
	for i, arg := range args {
		word := text(arg)
		switch {
		case word == "--":
			options = false
		case slices.Contains(known.words, word):
			c.report(arg, "%s %s: only GNU's has it", name, word)
		case options && strings.HasPrefix(word, "--"):
			if long, _, _ := strings.Cut(word, "="); !slices.Contains(known.long, long) {
				c.report(arg, "%s %s: POSIX has no long options; use the short one", name, long)
			}
		case options && len(word) > 1 && strings.HasPrefix(word, "-") && name != "find":
			for _, letter := range word[1:] {
				if strings.ContainsRune(known.short, letter) {
					c.report(arg, "%s -%c: only GNU's has it, or it means something else elsewhere", name, letter)
				}
				if strings.ContainsRune(known.arguments, letter) {
					break
				}
			}
		}
		if name == "head" && strings.HasPrefix(word, "-") && i > 0 && args[i-1].Lit() == "-n" {
			c.report(arg, "head -n with a negative number: only GNU's has it; use sed")
		}
		if (name == "sed" || name == "grep") && !strings.HasPrefix(word, "-") {
			if extension := sedExtension.FindStringSubmatch(word); extension != nil {
				c.report(arg, "%s with %s: only GNU's knows it; use a POSIX class, or -E", name, extension[1])
			}
		}
	}
}

// text returns the literal text of a word, with a zero byte for each part that is not literal.
func text(word *syntax.Word) string {
	var b strings.Builder
	var add func(parts []syntax.WordPart)
	add = func(parts []syntax.WordPart) {
		for _, part := range parts {
			switch part := part.(type) {
			case *syntax.Lit:
				b.WriteString(part.Value)
			case *syntax.SglQuoted:
				b.WriteString(part.Value)
			case *syntax.DblQuoted:
				add(part.Parts)
			default:
				b.WriteByte(0)
			}
		}
	}
	add(word.Parts)
	return b.String()
}
