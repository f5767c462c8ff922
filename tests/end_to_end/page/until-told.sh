until [ -e go ]; do sleep 0.05; done
