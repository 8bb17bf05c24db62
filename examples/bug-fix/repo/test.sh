# Fails if total.sh is wrong.
got=$(sh total.sh 1 2 3)
if [ "$got" != 6 ]; then
  echo "1 + 2 + 3 is $got, not 6"
  exit 1
fi
echo ok
