{-# LANGUAGE GADTs #-}
{- module No where {- nested -} -}
module Data.Shop (Shop(..), sell) where
import qualified Data.Map as M
-- | Docs: no :: Int
data Shop a = Shop { items :: [a], name' :: String } | Empty
  deriving (Show)
newtype Id = Id Int
type Names k = M.Map k String
class (Eq a, Show a) => Sell a where
  price :: a -> Int
  price _ = 1
  total, sum' :: [a] -> Int
instance Sell Int where
  price x = x
sell :: (Sell a)
     => a
     -> Int
sell x
  | price x > 1 = local
  | otherwise = '{' `seq` 0
  where local = 2
        helper y = y
untyped x y = x + y
untyped2 [] = 0
untyped2 (x:_) = x
f, g :: Int -> Int
f = (+ 1)
g x = let z = 1 in z
(<+>) :: Int -> Int -> Int
a <+> b = a + b
main :: IO ()
main = do
  let x = "main :: no"
  print x --> 2
