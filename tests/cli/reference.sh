# SPDX-License-Identifier: Apache-2.0
# Help, commands.md, man pages and completions come from one table: help begins with examples, whose options exist, the
# page that the build makes has every command and option, and bash completes commands, options and words.
source "$(dirname "$0")/../support/shell.sh"

commands=(probe check plan run diff show page solve import export simulate reference
  'solve '{split,placement,aggregation,routing,partition,dual-sync,memory,dense,locality,ring,oversubscription,capacity,torus,overlap})
ok reference markdown
cp "$last/stdout" commands.md
for command in "${commands[@]}"; do
  sed -n "/^## $command$/,/^## /p" commands.md > section
  [[ -s section ]] || fail "commands.md lacks '$command'"
  ok $command --help-all
  stdout_matches '^Usage: reckon '"$command"
  cp "$last/stdout" all
  for option in $(grep -oE '^  (-[a-zA-Z], *)?--[a-z][a-z-]*' all | grep -oE -- '--[a-z-]+' | grep -vxE -- '--help(-all)?'); do
    grep -qE -- "^\| \`(-[a-zA-Z], )?$option[ \`]" section || fail "commands.md lacks $option of $command"
  done
  ok $command --help
  sed -n '/^    reckon /p; /^$/q' "$last/stdout" > examples
  [[ -s examples && $(head -n 1 "$last/stdout") == "    "* ]] || fail "help of $command begins with no example"
  grep -q "^    .*reckon $command" examples || fail "no example is of $command"
  for option in $(grep -E "reckon $command" examples | sed "s/.*reckon //; s/ [|>].*//" | grep -oE -- '(^| )--?[a-z][a-z-]*' | tr -d ' '); do
    grep -qE -- "^ +(-[a-zA-Z],)?$option\b" all || fail "an example of $command has $option, which it does not know"
  done
done

# What --help only names, --help-all explains.
ok plan --help
stdout_says --help-all
stdout_has '--proxy-bytes'
stdout_lacks 'neighbouring rings'
[[ $(grep -cE '^  (-[a-z],)?--' "$last/stdout") -le 12 ]] || fail "plan --help explains more than ten options and help"
ok plan --help-all
stdout_has 'neighbouring rings' 'Memory devices'

# The build has made the pages; the fields of each document are in theirs.
made=$(dirname "$RECKON")/../../share/doc/reckon
if [[ -e $made/../../../cmake_install.cmake ]]; then
  cmp "$made/commands.md" commands.md || fail "the build's commands.md is not what the program writes"
  ok reference documents
  cmp "$made/documents-fields.md" "$last/stdout" || fail "the build's documents-fields.md is not what the program writes"
fi
ok reference documents
stdout_says '`ranks/*/host`'
stdout_has '## profile' '## workload' '## roles' '## plan' '## report' '## requirements' '| `cells[].case` |' '| `parts` |' '| `ranks[].host` |'

# One meaning a word: options of one name say the same up to the first ". ", ": " or "; ", in whatever command they are, and a
# short name stands for one long one.
json_check page="$(cat commands.md)" << 'END'
import collections, re
meanings, longs, command = collections.defaultdict(dict), collections.defaultdict(set), None
for line in page.splitlines():
    if line.startswith("## "):
        command = line[3:]
    if row := re.fullmatch(r"\| `(-.*?)` \| (.*) \|", line):
        names = re.findall(r"(?:^|, )(--?[a-zA-Z][\w-]*)", row[1])
        long = next(name for name in names if name.startswith("--"))
        meanings[long].setdefault(re.split("[.:;] ", row[2])[0], []).append(command)
        for short in set(names) - {long}:
            longs[short].add(long)
assert len(meanings) > 150 and len(longs) > 9, (len(meanings), len(longs))
several = {name: of for name, of in meanings.items() if len(of) > 1}
assert not several, json.dumps(several, indent=1)
assert all(len(of) == 1 for of in longs.values()), longs
END

# What pages and messages say to type exists: each option that a page of the sources types after a command is one of that command, and
# each in a text of the program is one of the command before it, or of some command, or of another program whose name is listed here.
json_check page="$(cat commands.md)" root="$source_dir" << 'END'
import pathlib, re
others = {"torchrun": "--nproc-per-node", "mpirun": "--hostfile --host --hosts", "srun": "--mpi --ntasks-per-node --nodelist", "lstopo": "--input --export-xml-flags",
          "nccom-test": "--stats --nworkers --nnodes", "perftest": "--bidirectional --all --report --CPU-freq", "nvidia-smi nvlink": "--status",
          "rocm-smi": "--showtopo --showxgmierr", "CSS": "--size --columns", "reckon": "--help --help-all --version --verbose",
          "names of old": "--budget --limit --peer-limit"}
options, command = {}, None
for line in page.splitlines():
    if line.startswith("## "):
        options[command := line[3:]] = {"--help", "--help-all", "-h", "-v"}
    if row := re.fullmatch(r"\| `(-.*?)` \| (.*) \|", line):
        options[command] |= set(re.findall(r"(?:^|, )(--?[a-zA-Z][\w-]*)", row[1]))
names = sorted(options, key=len, reverse=True)
any_command = set().union(*options.values(), *(of.split() for of in others.values()))
typed, said, wrong = 0, 0, []
def check(file, called):
    global typed
    name = next((n for n in names if called == n or called.startswith(n + " ")), None)
    for option in re.findall(r"(?:^|\s)(--?[a-z][\w-]*)", re.sub(r"'[^']*'|\"[^\"]*\"", "", called)) if name else []:
        typed += 1
        if option not in options[name] and not re.fullmatch("-[a-z]", option):
            wrong.append(f"{file}: reckon {name} {option}")
for file in sorted([*pathlib.Path(root).glob("*.md"), *(f for d in ("docs", "examples", "plans", "profiles") for f in pathlib.Path(root, d).glob("**/*.md"))]):
    if file.name == "CHANGELOG.md":
        continue
    text = re.sub(r"\\\n\s*", " ", file.read_text(encoding="utf-8"))
    pieces = [re.split(r"\s{3,}", line.strip())[0] for line in text.splitlines() if re.match(r"\s{4,}", line)] + re.findall(r"`([^`\n]+)`", text)
    for piece in pieces:
        for called in re.findall(r"(?:^|[\s/(])reckon (?!-)([^|;&#>)]*)", piece):
            check(file, called)
for file in sorted(f for d in ("lib", "apps") for f in pathlib.Path(root, d).glob("**/*.[ch]pp")):
    code = "\n".join(line for line in file.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("//"))
    for text in re.findall(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', code):
        text = re.sub(r'"\s*"', "", text)
        for called in re.findall(r"`reckon (?!-)([^`|;&#>)]*)", text):
            check(file, called)
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", text):
            said += 1
            wrong += [] if option in any_command else [f"{file}: {option}"]
assert typed > 150 and said > 700, (typed, said)
assert not wrong, "\n".join(wrong)
END

ok reference man plan
stdout_has '.TH reckon\-plan 1' '.B \-\-proxy\-bytes TEXT' '.SS Memory devices'
ok reference man
stdout_has '.BR reckon\-plan (1)'
refused "'plam'" reference man plam
refused "leave 'plan' out" reference bash plan

for shell in bash zsh fish; do
  ok reference $shell -o completion.$shell
  ! command -v $shell > /dev/null || $shell -n completion.$shell || fail "$shell cannot read its completions"
done
source completion.bash
compopt() { :; }
completes() { # EXPECTED WORDS...: what the last of the words becomes
  local expected=$1
  shift
  COMP_WORDS=(reckon "$@") COMP_CWORD=$#
  COMPREPLY=()
  _reckon reckon "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
  [[ ${COMPREPLY[*]} == "$expected" ]] || fail "'$*' completes to '${COMPREPLY[*]}', expected '$expected'"
}
completes plan pl
completes --collective plan --coll
completes 'all-reduce reduce-scatter all-gather broadcast reduce' plan --collective ''
completes split solve spl
completes '--workers --worker-bandwidths' solve split --work
touch here.json
completes here.json run here
