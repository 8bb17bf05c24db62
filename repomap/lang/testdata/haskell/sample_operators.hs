module Shop.Operators where

(+.), (-.), (*.) :: Money -> Money -> Money
(+.) = zipM (+)
(-.) = zipM (-)
(*.) = zipM (*)

(!?) :: [a] -> Int -> Maybe a
(!?) xs n = listToMaybe (drop n xs)
