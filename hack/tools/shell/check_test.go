// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// TestFindings has a script for each thing that bash 3.2 or macOS lacks, and what is said of it.
func TestFindings(t *testing.T) {
	for script, want := range map[string]string{
		`mapfile -t a < <(ls)`:              "mapfile: bash 4.0",
		`readarray a`:                       "readarray: bash 4.0",
		`declare -A a=([x]=y)`:              "declare -A: bash 4.0",
		`f() { local -n ref="$1"; }`:        "local -n: bash 4.3",
		`declare -gr x=1`:                   "declare -g: bash 4.2",
		`typeset -u x`:                      "typeset -u: bash 4.0",
		`echo "${x^^}"`:                     "${x^^}: bash 4.0",
		`echo "${x,}"`:                      "${x,}: bash 4.0",
		`echo "${x@Q}"`:                     "${x@...}: bash 4.4",
		`a |& b`:                            "|&: bash 4.0",
		`a &>>log`:                          "&>>: bash 4.0",
		`exec {fd}>log`:                     "{fd} before a redirection: bash 4.1",
		`coproc cat`:                        "coproc: bash 4.0",
		`case x in x) a ;& y) b ;; esac`:    ";&: bash 4.0",
		`case x in x) a ;;& y) b ;; esac`:   ";;&: bash 4.0",
		`echo "${a[-1]}"`:                   "a negative array index",
		`a[-1]=x`:                           "a negative array index",
		`unset 'a[-1]'`:                     "a negative array index",
		`echo "${x:0:-1}"`:                  "a negative length: bash 4.2",
		`wait -n`:                           "wait -n: bash 4.3",
		`printf -v 'a[0]' '%s' x`:           "printf -v with an array's element: bash 4.1",
		`printf '%(%Y)T' 0`:                 "printf %(...)T: bash 4.2",
		`printf '\u00e9'`:                   `\u0...: bash 4.2`,
		`echo $'\u00e9'`:                    `\u0...: bash 4.2`,
		`[[ -v x ]]`:                        "[[ -v: bash 4.2",
		`test -v x`:                         "test -v: bash 4.2",
		`read -N 1 x`:                       "read -N: bash 4.0",
		`read -t 0.5 x`:                     "read -t with a fraction",
		`echo "${EPOCHSECONDS}"`:            "EPOCHSECONDS: bash 5.0",
		`shopt -s globstar`:                 "shopt globstar: bash 4.0",
		`echo {01..10}`:                     "{01..10}: steps and leading zeros",
		`echo {1..10..2}`:                   "{1..10..2}: steps and leading zeros",
		`x=${ date; }`:                      "${ command; }: bash 5.3",
		`x=$(case y in y) echo z ;; esac)`:  "case inside of $(...)",
		"x=$(\n# it's\necho)":               "a quote or parenthesis in a comment inside of $(...)",
		"x=$(cat <<E\n)\nE\n)":              "a here-document inside of $(...)",
		`a=(); echo "${a[@]}"`:              "a may be empty",
		`a=("$@"); echo "${a[@]}"`:          "a may be empty",
		`a=(${x}); echo "${a[@]}"`:          "a may be empty",
		`read -r -a a <<<x; echo "${a[*]}"`: "a may be empty",
		`a=(x); a=(); echo "${a[@]}"`:       "a may be empty",
		`echo "${unknown[@]}"`:              "unknown may be empty",
		`a=(); echo ${b[@]+"${a[@]}"}`:      "a may be empty",
		`grep --quiet x`:                    "grep --quiet: POSIX has no long options",
		`ls | xargs grep --quiet x`:         "grep --quiet: POSIX has no long options",
		`exec sort --unique x`:              "sort --unique: POSIX has no long options",
		`tar --create .`:                    "tar --create: POSIX has no long options",
		`sed -ni p x`:                       "sed -i: only GNU's",
		`sed 's/\s//' x`:                    `sed with \s: only GNU's`,
		`sed 's/a\+//' x`:                   `sed with \+: only GNU's`,
		`readlink -f x`:                     "readlink -f: only GNU's",
		`date -d @0`:                        "date -d: only GNU's",
		`find . -printf x`:                  "find -printf: only GNU's",
		`head -n -1 x`:                      "head -n with a negative number",
		`n=$(nproc)`:                        "macOS has no nproc",
		"# portable: bash is not exempt\nmapfile -t a": "mapfile: bash 4.0",
		"# portable: one line only\ntrue\ndate -d @0":  "date -d: only GNU's",
	} {
		t.Run(script, func(t *testing.T) {
			findings, err := check("script", []byte(script+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			if len(findings) == 0 {
				t.Fatal("nothing is found")
			}
			for _, finding := range findings {
				if !strings.Contains(finding.String(), want) {
					t.Errorf("%s, want %q", finding, want)
				}
			}
		})
	}
}

// TestNoFindings has what looks alike and works everywhere.
func TestNoFindings(t *testing.T) {
	for _, script := range []string{
		`a=(); echo ${a[@]+"${a[@]}"} "${#a[@]}" "${!a[@]}"`,
		`a=(x "$@"); echo "${a[@]}" "${a[*]}"`,
		`a=("${x}"); a+=(y); for i in "${a[@]}"; do echo "${i}"; done`,
		`echo "$@" "${@:1}" "${x:-1}" "${x: -1}" "${x:1:2}" "${x##*/}" "${x/a/b}"`,
		`while IFS= read -r line; do a+=("${line}"); done < <(ls)`,
		`declare -a a; declare -r b=1; f() { local -r c=1; export -n d; }`,
		`printf -v x '%s' y; printf '%q\n' "${x}"; printf '%b' '\n'`,
		`a 2>&1 | b; a >>log 2>&1; a &>log; exec 3>log`,
		`case x in x) a ;; esac; x=$(f "it's")`,
		"# it's (\nx=$(\n# plain\nf)",
		`echo {1..10} {a..c} {a,b}`,
		`grep -rE 'x' . | sort -u | sed -E 's/a+//; s/\./,/' | sed 's/\\s//'`,
		`tar -c --null --no-recursion -T - -f - | tar -x -C x -f -`,
		`nproc 2>/dev/null || getconf _NPROCESSORS_ONLN`,
		`git diff --quiet; go list --json; curl --fail x; grep -- --quiet x`,
		"# portable: date -d is GNU's, date -r the others'\ndate -u -d @0 2>/dev/null || date -u -r 0",
		`ls | xargs -n 1 "${SHFMT}" -d --long; env -u A B=c "${x}" --long; exec "${x}" -d --long`,
		`f() { local n; wait "${n}"; }`,
		`cut -d- -f1; paste -sd ' ' -; head -n 6 x; head -n1 x; tail -n +4 x`,
	} {
		t.Run(script, func(t *testing.T) {
			findings, err := check("script", []byte(script+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			for _, finding := range findings {
				t.Error(finding)
			}
		})
	}
}

// TestPlaces shows that a finding names its line and column, in the order of the script, once.
func TestPlaces(t *testing.T) {
	findings, err := check("hack/x.sh", []byte("true\n  mapfile -t a\ntac x; mapfile b\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"hack/x.sh:2:3: mapfile", "hack/x.sh:3:1: macOS has no tac", "hack/x.sh:3:8: mapfile"}
	if len(findings) != len(want) {
		t.Fatalf("found %v, want %q", findings, want)
	}
	for i, finding := range findings {
		if !strings.HasPrefix(finding.String(), want[i]) {
			t.Errorf("found %s, want %q", finding, want[i])
		}
	}
}

// TestNoShell shows that what does not parse is an error rather than a script without findings.
func TestNoShell(t *testing.T) {
	if findings, err := check("script", []byte("if true; then\n")); err == nil {
		t.Errorf("no error, and findings %v", findings)
	}
}
