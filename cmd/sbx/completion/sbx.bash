# bash completion of sbx, the client of sandboxd
_sbx() {
  local cur=${COMP_WORDS[COMP_CWORD]} words=("${COMP_WORDS[@]:1:COMP_CWORD-1}") IFS=$'\n'
  [[ $cur == -* ]] && words+=("$cur")
  COMPREPLY=($(compgen -W "$(SANDBOXD_COMPLETE=1 "${COMP_WORDS[0]}" "${words[@]}" --generate-shell-completion 2>/dev/null |
    sed 's/:.*//')" -- "$cur"))
}
complete -o bashdefault -o default -F _sbx sbx
