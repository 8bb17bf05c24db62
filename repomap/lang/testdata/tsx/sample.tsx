import React from 'react'
interface Props { title: string; onClose?: () => void }
export const Panel: React.FC<Props> = ({ title, onClose }) => {
  const [open, setOpen] = useState(false)
  return <div onClick={() => setOpen(!open)}>It's {title} / {open ? 'a' : "b"}</div>
}
export default function App(props: Props) {
  return (
    <Panel title="x" />
  )
}
function useThing<T>(a: T): [T, (a: T) => void] { return [a, () => { }] }
