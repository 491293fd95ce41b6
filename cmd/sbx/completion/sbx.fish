# fish completion of sbx, the client of sandboxd
function __sbx_complete
    set -l args (commandline -opc)[2..-1]
    set -l word (commandline -ct)
    string match -q -- '-*' $word; and set -a args $word
    SANDBOXD_COMPLETE=1 sbx $args --generate-shell-completion 2>/dev/null | string replace -r ':' \t
end
complete -c sbx -a '(__sbx_complete)'
