package prose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// rule is a construction that does not occur, and what to write instead. A match of unless that
// covers the match of ban makes it legitimate: "not only", for example.
type rule struct {
	ban    *regexp.Regexp
	unless *regexp.Regexp
	remedy string
	holds  string // an example for the test of the rules
}

// words matches a pattern of whole words, also where a line ends between them.
func words(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:` + strings.ReplaceAll(pattern, " ", `\s+`) + `)\b`)
}

// rules are the constructions; the style guide in CONTRIBUTING.md explains them.
func rules() []rule {
	return []rule{
		{words(`can not`), words(`can not only`), "write cannot", "It can not be read."},
		{words(`(?:is|are|was|were) none`), words(`none of`), "say what is missing or wrong: not found, not set, not an X", "If there is none, it fails."},
		{words(`is no [a-z]+`), words(`there is no [a-z]+|is no (?:longer|more|less|different|better|worse|fewer|larger|smaller|older|newer|later|earlier)`), "write \"is not a ...\" or \"invalid ...\"", "The text is no JSON."},
		{words(`(?:is|are|was|were|be|being|been) told`), nil, "write gets, receives, is notified, is sent; or make the teller the subject", "The client is told."},
		{words(`hears? of`), nil, "write is notified of, learns about", "The editor hears of it."},
		{words(`who(?:ever)? asks`), nil, "write the caller", "It is for who asks."},
		{words(`as far as`), words(`as far as the (?:end|line|start)`), "write where, if, up to, or name the limit", "It is kept as far as possible."},
		{words(`in front of`), nil, "write before", "The hook runs in front of the call."},
		{words(`of one's own`), nil, "write your own", "For scripts of one's own."},
		{words(`by (?:it|them)sel(?:f|ves)`), nil, "write automatically, alone, or on its own", "It restarts by itself."},
		{words(`not there yet`), nil, "write not implemented, or does not exist yet", "The command is not there yet."},
		{words(`(?:and|or) the like`), nil, "name the things, or write similar", "Zed and the like."},
		{words(`anew`), nil, "write again", "It is built anew."},
		{words(`as wholes`), nil, "write atomically, or whole", "Files are written as wholes."},
		{words(`nobody`), words(`nobody (?:approved|approves|sits|wrote|else|knows?|knew|looked|may|can be asked|could be asked)`), "write no process, no caller, no user: say which", "Nobody waits for it."},
		{words(`what is (?:not )?there`), words(`what is there to`), "name the thing", "It reads what is there."},
		{regexp.MustCompile(`(?:^\s*|[.!?:]["')]?\s+|\n\n\s*)(?:What|Who|Whoever|That which|That it|That they) [^.?!]*[.!](?:\s|$)`), words(`what to [a-z]+`), "start with the thing or the actor, not with a clause", "What is read stays."},
		{words(`(?:is|are) called like`), nil, "write is named after", "It is called like its file."},
		{words(`becomes? of|became of|makes? of`), nil, "write what happens to, or name the result", "What became of the call?"},
		{words(`for ever`), nil, "write forever", "It waits for ever."},
		{words(`in vain`), nil, "write without success, or unnecessarily", "It waits in vain."},
		{words(`(?:is|are|was|were) not there`), nil, "write does not exist, is missing, or is not installed", "The file is not there."},
		{words(`anybody|whoever`), nil, "name the actor: the user, any process, any client", "Anybody can read it."},
		{words(`(?:counts?|counted) against`), nil, "say what happens", "It counts against the call."},
		{words(`(?:brings?|brought) along`), nil, "write includes, or contains", "What it brings along is kept."},
		{words(`(?:are|were) no [a-z]+`), words(`there (?:are|were) no [a-z]+|(?:are|were) no (?:longer|more|less|different|better|worse|fewer|larger|smaller|older|newer|later|earlier)`), "write are not ...", "These are no files."},
		{words(`hears? of|heard of|hearing of`), nil, "write is notified of, learns about", "The editor hears of it."},
		{words(`stands? (?:in|at|on|before|after|behind|there|beside|above|below|under|between)`), words(`stands? in for`), "write is, or follows, or precedes", "The key stands in the file."},
		{words(`behind`), words(`(?:leaves?|leaving|left)(?: [a-z]+){0,4} behind|(?:falls?|fell|fallen) behind|-behind|behind(?: (?:a|an|the|any|its|your|real|company))?(?: [a-z'-]+)? (?:proxy|proxies|HTTP|HTTPS|E2A|URL|TLS|NAT|firewall|server|tunnel|links?|faces?|Unix sockets|daemon|provider|endpoint|API|[A-Z][a-zA-Z]+ (?:API|endpoint|operation)|Completions endpoint|Chat Completions)|behind (?:its|his|their|our) backs?`), "write after, if it follows in time or in a list; otherwise name the relation", "The hook runs behind the call."},
		{regexp.MustCompile(`(?:^\s*|[.!?:]["')]?\s+|\n\n\s*)(?:Which|Whether|How|Why) [^.?!,:;]* (?:depends?|says?|is decided|is known|is said|is held|will show|shows) [^.?!]*[.!](?:\s|$)`), nil, "start with the thing or the actor, not with a clause", "Which address it leads to is decided later."},
		{words(`(?:what|which) (?:is|was|are|were|has|had|it|they|he|she|you) [a-z]+(?: [a-z]+)? (?:is|was|stays|goes|comes|counts|remains|are kept|are sent)`), nil, "name the thing instead of the clause with what", "Then what was sent stays as it was."},
		{words(`rooms?`), words(`(?:rooms? (?:for|left|enough|there|to|in|is left|at)|(?:no|enough|more|much|any|some|makes?|making|leaves?|leaving|little|less|the) room)`), "write package", "Each room has its comment."},
	}
}

type finding struct {
	line   int
	words  string
	remedy string
}

func (f finding) String() string { return fmt.Sprintf("%q: %s", f.words, f.remedy) }

// check finds the constructions that the rules ban in a text whose first line has the number line.
func check(rules []rule, text string, line int) []finding {
	var found []finding
	for _, r := range rules {
		var legitimate [][]int
		if r.unless != nil {
			legitimate = r.unless.FindAllStringIndex(text, -1)
		}
		for _, at := range r.ban.FindAllStringIndex(text, -1) {
			covers := func(span []int) bool {
				return span[0] <= at[0] && at[1] <= span[1] || at[0] <= span[0] && span[1] <= at[1]+12 && span[0] < at[1]
			}
			if slices.ContainsFunc(legitimate, covers) {
				continue
			}
			words := text[at[0]:at[1]]
			start := at[0] + len(words) - len(strings.TrimLeft(words, ".!?:\"') \n\t"))
			words = strings.Join(strings.Fields(text[start:at[1]]), " ")
			const longest = 60
			if len(words) > longest {
				words = strings.ToValidUTF8(words[:longest], "") + "..."
			}
			found = append(found, finding{line + strings.Count(text[:start], "\n"), words, r.remedy})
		}
	}
	slices.SortStableFunc(found, func(a, b finding) int { return a.line - b.line })
	return found
}
