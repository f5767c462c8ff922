i=0
while :; do
i=$((i+1))
echo "time=$(date -u +%Y-%m-%dT%H:%M:%S.%NZ) msg=item.begun item=item-$i"
sleep 0.05
echo "time=$(date -u +%Y-%m-%dT%H:%M:%S.%NZ) msg=item.done item=item-$i"
sleep 0.05
done
