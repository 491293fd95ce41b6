#compdef sbx
# zsh completion of sbx, the client of sandboxd
_sbx() {
  local -a args found
  args=("${words[@]:1:$((CURRENT - 2))}")
  [[ ${words[CURRENT]} == -* ]] && args+=("${words[CURRENT]}")
  found=("${(@f)$(SANDBOXD_COMPLETE=1 ${words[1]} "${args[@]}" --generate-shell-completion 2>/dev/null)}")
  if [[ -n ${found[1]} ]]; then
    _describe 'sbx' found
  else
    _files
  fi
}
if [[ ${funcstack[1]} == _sbx ]]; then
  _sbx "$@"
else
  compdef _sbx sbx
fi
